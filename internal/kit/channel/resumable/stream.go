package resumable

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// Read returns what has arrived; it waits over all breaks. An end that has been closed is at
// its end.
func (e *End) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		l, err := e.awaitLine()
		if err != nil {
			return 0, err
		}
		n, err := e.readData(l, p)
		if n > 0 && e.countReceived(l, n) {
			return n, nil
		}
		if err := e.failLine(l, err); err != nil {
			return 0, err
		}
	}
}

// Deliver writes what arrives to another writer, until one of them ends. Bytes that count as received have been written.
func (e *End) Deliver(to io.Writer) error {
	buf := make([]byte, mostData)
	for {
		l, err := e.awaitLine()
		if err != nil {
			return err
		}
		n, err := e.readData(l, buf)
		if n > 0 {
			if err := e.passData(l, to, buf[:n]); err != nil {
				e.endWith(err)
				return err
			}
		}
		if err := e.failLine(l, err); err != nil {
			return err
		}
	}
}

// passData writes to another writer what came over a line, if it is still the end's.
func (e *End) passData(l *connection, to io.Writer, p []byte) error {
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	still := e.line == l
	e.mu.Unlock()
	if !still {
		return nil // it will be sent again
	}
	n, err := to.Write(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received += uint64(n)
	e.wakeWaiters()
	return err
}

// awaitLine waits for a line.
func (e *End) awaitLine() (l *connection, err error) {
	err = e.waitUntil(func() bool {
		l = e.line
		return l != nil
	})
	return l, err
}

// countReceived counts what came over a line, if it is still the end's; else it will be sent again.
func (e *End) countReceived(l *connection, n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.line != l {
		return false
	}
	e.received += uint64(n)
	e.wakeWaiters()
	return true
}

// failLine takes a line away that has an error. It returns an error that ends the end.
func (e *End) failLine(l *connection, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrBroken) {
		e.endWith(err)
		return err
	}
	e.dropLine(l)
	return nil
}

// Write sends; it waits while too much is on its way.
func (e *End) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		err := e.waitUntil(func() bool {
			n := min(window-len(e.pending), len(p)-written)
			if n <= 0 || e.over != nil {
				return false
			}
			e.pending = append(e.pending, p[written:written+n]...)
			written += n
			e.wakeWaiters()
			return true
		})
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Feed sends what a socket gives, to its end. Bytes are in the socket or in the end's state,
// and never in between: who sees that the socket has none knows that the state has them.
// While the end is held, nothing is taken.
func (e *End) Feed(from syscall.Conn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, mostData)
	for {
		if err := e.waitUntil(func() bool { return e.roomToSend() > 0 }); err != nil {
			return err
		}
		taken := 1
		var failed error
		err := raw.Read(func(fd uintptr) (done bool) {
			taken, failed = e.takeFromSocket(int(fd), buf)
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err = errors.Join(err, failed); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if taken == 0 {
			return io.EOF
		}
	}
}

// roomToSend is how much more may be sent now. Needs mu.
func (e *End) roomToSend() int {
	if e.held || e.over != nil {
		return 0
	}
	return window - len(e.pending)
}

// takeFromSocket reads from a socket what there is, as far as there is room; -1 where there is none.
func (e *End) takeFromSocket(fd int, buf []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	room := min(e.roomToSend(), len(buf))
	if room <= 0 {
		return -1, nil
	}
	n, err := unix.Read(fd, buf[:room])
	if n > 0 {
		e.pending = append(e.pending, buf[:n]...)
		e.wakeWaiters()
	}
	return n, err
}
