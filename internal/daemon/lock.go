package daemon

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// takeLock makes this process the installation's one daemon. The lock goes with
// the process, however it ends.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fault.New(fault.ErrConflict, "a daemon runs already (%s); cofferdam stop ends it", path)
		}
		return nil, err
	}
	return f, nil
}
