package kept

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestSandboxesUsersPassThrough: what a daemon with a umask of 077 has left does not shut
// sandboxes' users out of the folders of new ones, which they can't list either.
func TestSandboxesUsersPassThrough(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	all := filepath.Join(state, "sandboxes")
	if err := os.Mkdir(all, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := NewHome("e", state, "cofferdam-test", 0, nil).Claim("box")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{all, filepath.Dir(dir), dir} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != fs.FileMode(0o711) {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
	}
}
