package daemon

import (
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/filelock"
)

// takeLock makes this process the installation's one daemon. The lock goes with
// the process, however it ends.
func takeLock(path string) (*filelock.Lock, error) {
	lock, err := filelock.Take(path)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fault.New(fault.ErrConflict, "a daemon runs already (%s); cofferdam stop ends it", path)
	}
	return lock, err
}
