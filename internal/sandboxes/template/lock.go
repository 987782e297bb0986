package template

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// buildLock is held by the one process that builds or removes a name.
type buildLock struct{ lock *filelock.Lock }

// lockName waits for a name's lock; waiting (may be nil) is called once if another
// process holds it.
func (s *Store) lockName(ctx context.Context, name string, waiting func()) (*buildLock, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil { //nolint:gosec // engines read templates as another user
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the templates' folder %s cannot be made", s.dir)
	}
	lock, err := filelock.Await(ctx, filepath.Join(s.dir, ".lock-"+name), 100*time.Millisecond, func() error {
		if waiting != nil {
			waiting()
			waiting = nil
		}
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Wrap(fault.ErrUnavailable, err, "template %s cannot be locked in the templates' folder %s", name, s.dir)
	}
	return &buildLock{lock}, nil
}

func (l *buildLock) releaseLock() { _ = l.lock.Release() }
