package template

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// buildLock is held by the one process that builds or removes a name. The
// kernel gives it back when the process ends, however that happens.
type buildLock struct{ file *os.File }

// lock waits for a name's lock; waiting (may be nil) is called once if another
// process holds it.
func (s *Store) lock(ctx context.Context, name string, waiting func()) (*buildLock, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil { //nolint:gosec // engines read templates as another user
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the templates' folder %s cannot be made", s.dir)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, ".lock-"+name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the templates' folder %s cannot be written", s.dir)
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &buildLock{file}, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			_ = file.Close()
			return nil, fault.Wrap(fault.ErrUnavailable, err, "template %s cannot be locked", name)
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

func (l *buildLock) release() { _ = l.file.Close() }
