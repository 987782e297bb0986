package microvm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTakeLeavesNoPart: where a file of the monitor's has to be copied to another file system,
// and that is full, nothing of it is left there.
func TestTakeLeavesNoPart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root mounts")
	}
	from, other := filepath.Join(t.TempDir(), "memory"), t.TempDir()
	if err := errors.Join(os.WriteFile(from, make([]byte, 3<<20), 0o600), unix.Mount("tmpfs", other, "tmpfs", 0, "size=1m")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(other, 0); err != nil {
			t.Error(err)
		}
	})
	to := filepath.Join(other, "memory")
	if err := take(from, to); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("of 3 MB on a file system of one: %v", err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part of it is left (%v)", err)
	}
	if err := errors.Join(os.Truncate(from, 4<<10), take(from, to)); err != nil {
		t.Errorf("INCONCLUSIVE: what has room is not taken: %v", err)
	}
}
