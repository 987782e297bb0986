// Package filelock keeps others out by the lock of a file, which goes with the process
// that has it, however that ends.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld tells that somebody else has the lock.
var ErrHeld = errors.New("somebody else has the lock")

// Lock is a lock that this process has. Give it back with Release.
type Lock struct{ file *os.File }

// Take takes the lock of the file at path, which it makes if there is none. ErrHeld:
// somebody else has it.
func Take(path string) (*Lock, error) {
	return openAndTake(path, Of)
}

// Await takes the lock of the file at path, which it makes if there is none, and tries
// again and again while somebody else has it. held (may be nil) is called each time; with
// what it returns, unless that is nil, the wait ends.
func Await(ctx context.Context, path string, every time.Duration, held func() error) (*Lock, error) {
	return openAndTake(path, func(file *os.File) (*Lock, error) {
		again := time.NewTicker(every)
		defer again.Stop()
		for {
			l, err := Of(file)
			if !errors.Is(err, ErrHeld) {
				return l, err
			}
			if held != nil {
				if err := held(); err != nil {
					return nil, err
				}
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	})
}

// openAndTake opens a file and has its lock taken. Without the lock the file is closed.
func openAndTake(path string, take func(*os.File) (*Lock, error)) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) // #nosec G304 -- the callers' own directories
	if err != nil {
		return nil, err
	}
	l, err := take(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// Of takes the lock of an open file, which Release closes. With an error the file is the
// caller's to close. ErrHeld: somebody else has the lock.
func Of(file *os.File) (*Lock, error) {
	err := flockFile(file, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return &Lock{file}, nil
}

// WaitOf does what Of does, and waits for as long as somebody else has the lock.
func WaitOf(file *os.File) (*Lock, error) {
	if err := flockFile(file, unix.LOCK_EX); err != nil {
		return nil, err
	}
	return &Lock{file}, nil
}

// Release gives the lock back and closes the file. Closing alone would not do: a program
// that another part of this process is just starting has a copy of the file until it runs,
// and would keep the lock that long.
func (l *Lock) Release() error {
	return errors.Join(flockFile(l.file, unix.LOCK_UN), l.file.Close())
}

func flockFile(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
