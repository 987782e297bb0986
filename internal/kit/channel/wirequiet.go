package channel

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// quietLook is the pause between two looks at what the guest has not read yet;
// no event tells that a socket's peer has read it all.
const quietLook = time.Millisecond

// Quiesce stops writing, at the end of a frame, and returns when the guest has
// read all that was written. A guest that does not, until ctx ends, is a
// fault.ErrUnavailable, and then the wire is as before. Reading goes on.
func (w *Wire) Quiesce(ctx context.Context) error {
	w.mu.Lock()
	if w.state != wireOpen {
		w.mu.Unlock()
		return fault.New(fault.ErrConflict, "the channel is closed or quiet already")
	}
	conn := w.conn
	w.pauses++
	w.turnState(wireSettling)
	w.mu.Unlock()

	err := w.settleWire(ctx, conn)
	if err == nil {
		err = awaitRead(ctx, conn)
	}
	if err != nil {
		w.Resume()
	}
	return err
}

// settleWire makes the wire quiet as soon as the frame that is being written has
// ended.
func (w *Wire) settleWire(ctx context.Context, conn hostEnd) error {
	w.interrupt(conn)
	look := time.NewTicker(quietLook)
	defer look.Stop()
	for !w.settled() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return notRead(ctx.Err())
		}
	}
	return nil
}

// interrupt has a writer in the middle come back with what it has written so
// far; one of frames goes on to the end of its frame.
func (w *Wire) interrupt(conn hostEnd) {
	if !w.sending.TryLock() { // there is one
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
		w.sending.Lock()
		_ = conn.SetWriteDeadline(time.Time{})
	}
	w.sending.Unlock()
}

func (w *Wire) settled() bool {
	if !w.sending.TryLock() {
		return false
	}
	defer w.sending.Unlock()
	if w.out.leftOfFrame() > 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == wireSettling {
		w.turnState(wireQuiet)
	}
	return true
}

func notRead(err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's agent does not read what it was sent")
}

// awaitRead waits until the peer's queue is empty.
func awaitRead(ctx context.Context, conn hostEnd) error {
	look := time.NewTicker(quietLook)
	defer look.Stop()
	for {
		unread, err := outgoing(conn)
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the channel can't be looked at")
		}
		if unread == 0 {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return notRead(ctx.Err())
		}
	}
}

// outgoing is what the kernel keeps of what was written and not read yet, in
// bytes of its own accounting.
func outgoing(conn hostEnd) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	unread := 0
	var failed error
	err = raw.Control(func(fd uintptr) { unread, failed = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return unread, errors.Join(err, failed)
}
