package daemon

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// A process that is killed while it starts a program leaves a copy of its lock in that program's
// process, until the program runs there. So a lock that is held is waited for a little.
const (
	lockTime  = 5 * time.Second
	lockEvery = 20 * time.Millisecond
)

// takeLock makes this process the installation's one daemon. The lock goes with
// the process, however it ends.
func takeLock(ctx context.Context, path string) (*filelock.Lock, error) {
	held := fault.New(fault.ErrConflict, "a daemon runs already (%s); cofferdam stop ends it", path)
	ctx, cancel := context.WithTimeoutCause(ctx, lockTime, held)
	defer cancel()
	return filelock.Await(ctx, path, lockEvery, nil)
}
