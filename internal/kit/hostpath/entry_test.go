package hostpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindLinksToNothing: a stranger's files may have a link to a name that nothing has yet. No
// file is made there, whoever may have left it.
func TestFindLinksToNothing(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"direct": "new", "far": "direct", "to": "real", "there": "real/file"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755), os.WriteFile(filepath.Join(dir, "real", "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"direct", "far", "to/../direct"} {
		e, err := Find(dir+"/"+name, nil)
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a link that leads to nothing") {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	// The controls: a name that nothing has, also behind a link to its directory, and a link to a file.
	for name, want := range map[string]string{"none": "none", "to/none": "real/none", "there": "real/file"} {
		e, err := Find(dir+"/"+name, nil)
		if err != nil || e.Name != filepath.Join(dir, want) || e.File.IsZero() != strings.HasSuffix(want, "none") {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}
