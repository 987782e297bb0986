package channel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A Wire is the connection under a host's session, which can be exchanged
// while the session lives: for a guest that is written to disk and goes on
// later, behind another socketpair. The stream of bytes goes on where it was:
// each byte arrives once and in order, nothing is sent again.
//
// The exchange, in order: Quiesce (nothing that was written is on its way any
// more), the guest is written to disk and ended by its engine, Unplug (what it
// wrote last is kept), and later Plug. Resume takes a Quiesce back. In between,
// reads and writes wait. These four are for one caller at a time; Read, Write
// and Close may be called at any time, by one reader and one writer each.
//
// Under a session a wire is quiet between two of its frames, never within one:
// a copy of a guest that has read half a frame would take what its host says
// first for the other half.
type Wire struct {
	sending sync.Mutex // held over a write to conn; guards framed and out
	framed  bool       // what is written are a session's frames
	out     framing    // of what was written, if framed
	reading sync.Mutex // held over a read from conn

	mu     sync.Mutex // guards what follows; never held over a read or write
	conn   hostEnd    // nil while unplugged
	state  wireState
	rest   []byte        // read from a former connection, not asked for yet
	turned chan struct{} // closed, and made anew, when state changes
	pauses int           // how often Quiesce was called
}

// hostEnd is what a wire needs of a socket.
type hostEnd interface {
	net.Conn
	syscall.Conn
}

type wireState int

const (
	wireOpen     wireState = iota
	wireSettling           // to become quiet at the end of a frame
	wireQuiet
	wireUnplugged
	wireClosed
)

// NewWire makes a wire of the host's end of a SocketPair, which it owns.
func NewWire(conn net.Conn) (*Wire, error) {
	end, err := asHostEnd(conn)
	if err != nil {
		return nil, err
	}
	return &Wire{conn: end, turned: make(chan struct{})}, nil
}

// UnpluggedWire makes a wire that has no connection yet; Plug or Renew gives it
// one.
func UnpluggedWire() *Wire { return &Wire{state: wireUnplugged, turned: make(chan struct{})} }

// markFramed notes that what is written are a session's frames.
func (w *Wire) markFramed() {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.framed = true
}

func asHostEnd(conn net.Conn) (hostEnd, error) {
	end, ok := conn.(hostEnd)
	if !ok {
		return nil, fault.Invalid("a %T can't be the wire of a channel: it is no socket", conn)
	}
	return end, nil
}

// Read returns io.EOF when the guest has closed its end, except after a
// Quiesce: then the guest is expected to end, and Read waits for what follows.
func (w *Wire) Read(p []byte) (int, error) {
	for {
		conn, turned, n, err := w.readable(p)
		if n > 0 || err != nil {
			return n, err
		}
		if conn == nil {
			<-turned
			continue
		}
		w.reading.Lock()
		n, err = conn.Read(p)
		w.reading.Unlock()
		if n > 0 || err == nil {
			return n, nil
		}
		if !w.readsOn(conn, turned) {
			return 0, err
		}
	}
}

// readable takes what is kept, or gives the connection to read from; without
// one, turned tells when there may be one.
func (w *Wire) readable(p []byte) (conn hostEnd, turned <-chan struct{}, n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		n = copy(p, w.rest)
		w.rest = w.rest[n:]
		return nil, nil, n, nil
	}
	if w.state == wireClosed {
		return nil, nil, 0, net.ErrClosed
	}
	return w.conn, w.turned, 0, nil
}

// readsOn decides what an error of conn means, and waits where it is the end
// of a guest that is being frozen.
func (w *Wire) readsOn(conn hostEnd, turned <-chan struct{}) bool {
	w.mu.Lock()
	same, state := w.conn == conn, w.state
	w.mu.Unlock()
	if !same {
		return state != wireClosed
	}
	if state != wireQuiet {
		return false
	}
	<-turned
	return true
}

// Write waits while the wire is quiet. On an error it tells how much the
// connection took.
func (w *Wire) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, turned, err := w.sendNow(p[written:])
		written += n
		if err != nil {
			return written, err
		}
		if turned != nil {
			<-turned
		}
	}
	return written, nil
}

// sendNow writes what can be written now. It gives a channel to wait for if the
// wire is, or became, quiet.
func (w *Wire) sendNow(p []byte) (int, <-chan struct{}, error) {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.mu.Lock()
	conn, state, turned := w.conn, w.state, w.turned
	w.mu.Unlock()
	switch state {
	case wireClosed:
		return 0, nil, net.ErrClosed
	case wireQuiet, wireUnplugged:
		return 0, turned, nil
	case wireSettling:
		p = p[:min(len(p), w.out.leftOfFrame())]
		if len(p) == 0 {
			return 0, turned, nil
		}
	case wireOpen:
	}
	n, err := conn.Write(p)
	if w.framed {
		w.out.passFrames(p[:n])
	}
	if err != nil && IsTimeout(err) { // Quiesce wants it back
		return n, nil, nil
	}
	return n, nil, err
}

// Resume takes a Quiesce back: writing goes on. A guest that has ended since
// is noticed now.
func (w *Wire) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == wireQuiet || w.state == wireSettling {
		w.turnState(wireOpen)
	}
}

// Unplug takes the connection away, after a Quiesce and when nothing of the
// guest runs any more: what it had written and nobody read is kept for Read.
func (w *Wire) Unplug() error {
	w.mu.Lock()
	conn, state := w.conn, w.state
	w.mu.Unlock()
	if state != wireQuiet {
		return fault.New(fault.ErrConflict, "the channel is closed or was not quiet")
	}
	_ = conn.SetReadDeadline(time.Unix(1, 0)) // a reader lets go
	w.reading.Lock()
	rest, err := incoming(conn)
	w.reading.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != wireQuiet {
		return net.ErrClosed
	}
	w.rest = append(w.rest, rest...)
	w.conn = nil
	w.turnState(wireUnplugged)
	return errors.Join(err, conn.Close())
}

// incoming reads what lies in the socket. The peer is gone, so that nothing
// can be added, and the kernel bounds how much it can be.
func incoming(conn hostEnd) ([]byte, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var rest []byte
	buf := make([]byte, 64<<10)
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			n, err := unix.Read(int(fd), buf)
			switch {
			case n > 0:
				rest = append(rest, buf[:n]...)
			case errors.Is(err, unix.EINTR):
			case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ECONNRESET):
				return
			default:
				failed = fmt.Errorf("read the end of a channel: %w", err)
				return
			}
		}
	})
	return rest, errors.Join(err, failed)
}

// Plug puts a new connection, which the wire owns from now on, under the
// session: reads and writes go on.
func (w *Wire) Plug(conn net.Conn) error {
	end, err := asHostEnd(conn)
	if err != nil {
		return err
	}
	return w.plugConn(end, nil)
}

// plugConn takes what was read from a connection already, too.
func (w *Wire) plugConn(end hostEnd, rest []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != wireUnplugged {
		return fault.New(fault.ErrConflict, "the channel is closed or has a connection")
	}
	w.conn, w.rest = end, append(w.rest, rest...)
	w.turnState(wireOpen)
	return nil
}

// Pauses tells how often the wire has been quiet, and whether it is now: for
// who counts time in which the guest could have answered.
func (w *Wire) Pauses() (times int, now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pauses, w.state == wireSettling || w.state == wireQuiet || w.state == wireUnplugged
}

// Close ends the wire for good.
func (w *Wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == wireClosed {
		return nil
	}
	conn := w.conn
	w.conn = nil
	w.turnState(wireClosed)
	if conn == nil {
		return nil
	}
	return conn.Close()
}

// turnState needs mu.
func (w *Wire) turnState(to wireState) {
	w.state = to
	close(w.turned)
	w.turned = make(chan struct{})
}

var _ io.ReadWriteCloser = (*Wire)(nil)
