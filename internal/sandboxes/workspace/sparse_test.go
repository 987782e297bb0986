package workspace_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// taken is what a file takes of the disk.
func taken(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestAHoleTakesNothing: a file that says that it is long takes nothing of whoever makes it, so that an agent may have left one of
// any size. Neither the copy of the project, which lies beside the daemon's log, nor what is brought over may take its
// length of the host's disk. The control is what was written, which is there.
func TestAHoleTakesNothing(t *testing.T) {
	const long, most = 256 << 20, 16 << 20
	dir, err := filepath.EvalSymlinks(t.TempDir())
	sure(t, err)
	original := filepath.Join(dir, "project")
	sure(t, os.Mkdir(original, 0o755))
	sure(t, os.WriteFile(filepath.Join(original, "hole"), []byte("begin"), 0o644))
	sure(t, os.Truncate(filepath.Join(original, "hole"), long))
	if n := taken(t, filepath.Join(original, "hole")); n > most {
		t.Fatalf("this file system has no holes: %d bytes", n)
	}
	w, err := workspace.Make(t.Context(), original, filepath.Join(dir, "copy"), nil)
	sure(t, err)
	copied, err := os.Open(filepath.Join(w.Dir(), "hole"))
	sure(t, err)
	begin := make([]byte, 5)
	if _, err := copied.Read(begin); err != nil || string(begin) != "begin" {
		t.Fatalf("the control: %q, %v", begin, err)
	}
	sure(t, copied.Close())
	if n := taken(t, filepath.Join(w.Dir(), "hole")); n > most {
		t.Errorf("a copy of a file that takes nothing takes %d MiB of the host's disk", n>>20)
	}
	// The files that a run leaves in its copy.
	sure(t, os.WriteFile(filepath.Join(w.Dir(), "new"), []byte("begin"), 0o644))
	sure(t, os.Truncate(filepath.Join(w.Dir(), "new"), long))
	changes, err := w.Changes(t.Context())
	sure(t, err)
	if applied, errs := w.Apply(t.Context(), changes, false); len(applied) != 1 || errs != nil {
		t.Fatalf("%+v, %v", applied, errs)
	}
	if n := taken(t, filepath.Join(original, "new")); n > most {
		t.Errorf("what is brought over, and takes nothing, takes %d MiB of the person's disk", n>>20)
	}
}

func sure(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
