package daemon

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestAStateFromWhichNothingRuns: a directory that is mounted noexec is refused with what to
// do, and one that is not is taken. The mounts are in a namespace of the test's own.
func TestAStateFromWhichNothingRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounts need root")
	}
	dir := t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the namespace goes with the thread
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
			t.Error(err)
			return
		}
		for flags, refused := range map[uintptr]bool{unix.MS_NOEXEC: true, 0: false} {
			if err := unix.Mount("tmpfs", dir, "tmpfs", flags, ""); err != nil {
				t.Error(err)
				return
			}
			err := executable(dir)
			if errors.Is(err, fault.ErrUnavailable) != refused || refused && !strings.Contains(err.Error(), "COFFERDAM_STATE") {
				t.Errorf("mounted with %d: %v", flags, err)
			}
			if err := unix.Unmount(dir, 0); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	<-done
}
