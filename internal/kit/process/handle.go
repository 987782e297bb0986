package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Handle holds one process: it never comes to mean another.
type Handle struct{ fd int }

// Open takes hold of a process; ErrOver when its number is nobody's, or
// another's.
func Open(id ID) (Handle, error) {
	handle, err := Hold(id.Pid)
	if err != nil {
		return Handle{}, err
	}
	if !id.Is() { // Looked at after it was held, so that what was looked at is what is held.
		handle.Close()
		return Handle{}, ErrOver
	}
	return handle, nil
}

// Hold takes hold of whatever process has a number now. The caller then looks
// whether it is the one that he means.
func Hold(pid int) (Handle, error) {
	if !Ordinary(pid) {
		return Handle{}, fmt.Errorf("%d is the number of no process that may be held", pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return Handle{}, asOver(err)
	}
	return Handle{fd: fd}, nil
}

// Close lets go of the process.
func (h Handle) Close() { _ = unix.Close(h.fd) } // Nothing was written to it.

// Signal is ErrOver when the process is over.
func (h Handle) Signal(sig unix.Signal) error {
	return asOver(unix.PidfdSendSignal(h.fd, sig, nil, 0))
}

// look is how long Await sleeps between two looks at its context.
const look = 500 * time.Millisecond

// Await returns when the process has ended, whoever is to wait for it, or with
// the context's error.
func (h Handle) Await(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(look.Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for a process: %w", err)
		}
	}
	return ctx.Err()
}
