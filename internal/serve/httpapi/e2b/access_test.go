package e2b_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// TestTheAccessKeyIsKeptWell, or it is refused.
func TestTheAccessKeyIsKeptWell(t *testing.T) {
	t.Parallel()
	good := make([]byte, 32)
	rand.Read(good)
	for name, c := range map[string]struct {
		key  []byte
		mode os.FileMode
		want error
	}{
		"good":      {good, 0o600, nil},
		"read-only": {good, 0o400, nil},
		"world":     {good, 0o644, fault.ErrForbidden},
		"group":     {good, 0o640, fault.ErrForbidden},
		"zeros":     {make([]byte, 32), 0o600, fault.ErrConflict},
		"pattern":   {bytes.Repeat([]byte("abcd"), 8), 0o600, fault.ErrConflict},
		"short":     {good[:31], 0o600, fault.ErrConflict},
		"long":      {append(bytes.Clone(good), 1), 0o600, fault.ErrConflict},
	} {
		path := filepath.Join(t.TempDir(), "access.key")
		if err := errors.Join(os.WriteFile(path, c.key, 0o600), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := e2b.LoadKeys(path, nil); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		link := path + ".link"
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		if _, err := e2b.LoadKeys(link, nil); err == nil {
			t.Errorf("%s: a link is followed", name)
		}
	}
}
