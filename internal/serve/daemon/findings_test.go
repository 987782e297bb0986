package daemon

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheKeyOfFindings: one that can be guessed, that others can read, or that a link leads to,
// is refused, and one is made where there is none and found again.
func TestTheKeyOfFindings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "findings.key")
	made, err := loadFindingsKey(path)
	must(t, err)
	again, err := loadFindingsKey(path)
	must(t, err)
	if len(made) != sha256.Size || !bytes.Equal(made, again) {
		t.Errorf("made %x, found again %x", made, again)
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, path string) error
		says string
	}{
		"of zeros": {func(_ *testing.T, path string) error { return os.WriteFile(path, make([]byte, sha256.Size), 0o600) }, "random bytes"},
		"of one letter": {func(_ *testing.T, path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("k"), sha256.Size), 0o600)
		}, "random bytes"},
		"too short":        {func(_ *testing.T, path string) error { return os.WriteFile(path, made[:16], 0o600) }, "random bytes"},
		"too long":         {func(_ *testing.T, path string) error { return os.WriteFile(path, append(bytes.Clone(made), 1), 0o600) }, "random bytes"},
		"that others read": {func(_ *testing.T, path string) error { return os.WriteFile(path, made, 0o644) }, "its mode is 0644"},
		"a link": {func(t *testing.T, path string) error {
			t.Helper()
			must(t, os.WriteFile(path+".there", made, 0o600))
			return os.Symlink(path+".there", path)
		}, "it is a link"},
	} {
		at := filepath.Join(t.TempDir(), "findings.key")
		must(t, c.make(t, at))
		if _, err := loadFindingsKey(at); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), at) {
			t.Errorf("a key %s: %v; want %q", name, err, c.says)
		}
	}
}
