package channel

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// stream is a stream of a session. When the session ends, the multiplexer lets
// everybody who waits in one of its reads or writes run in circles until it
// gets round to closing their stream, and with some hundred of them on few
// processors it does not get round to it for minutes: one guest with many
// streams would take the host's processors at its death. So a stream that is
// being read or written is known to its session, which gives it a passed
// deadline as it ends: that ends the circles.
type stream struct {
	*yamux.Stream
	waits *waits
	held  *held // nil at the guest's end
}

var _ net.Conn = (*stream)(nil)

// Read returns io.EOF when the peer has closed, or the session has ended and
// all that had arrived is read; after a reset it is ErrReset.
func (s *stream) Read(p []byte) (int, error) {
	s.waits.enter(s)
	n, err := s.Stream.Read(p)
	if s.held != nil {
		s.held.taken(s.Stream, n, err != nil && !IsTimeout(err))
	}
	over := s.waits.leave(s)
	switch {
	case over && err != nil && s.waits.wasReset():
		err = ErrReset
	case over && errors.Is(err, yamux.ErrTimeout):
		err = io.EOF
	}
	return n, err
}

// Write waits for the peer's window.
func (s *stream) Write(p []byte) (int, error) {
	s.waits.enter(s)
	n, err := s.Stream.Write(p)
	over := s.waits.leave(s)
	switch {
	case over && err != nil && s.waits.wasReset():
		err = ErrReset
	case over && errors.Is(err, yamux.ErrTimeout):
		err = yamux.ErrSessionShutdown
	}
	return n, err
}

// Close tells the peer that nothing more comes; reading goes on.
func (s *stream) Close() error {
	err := s.Stream.Close()
	if s.held != nil {
		s.held.closed(s.Stream)
	}
	return err
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (s *stream) SetDeadline(t time.Time) error {
	return s.waits.unlessOver(func() error { return s.Stream.SetDeadline(t) })
}

// SetReadDeadline also wakes a Read that waits.
func (s *stream) SetReadDeadline(t time.Time) error {
	return s.waits.unlessOver(func() error { return s.Stream.SetReadDeadline(t) })
}

// SetWriteDeadline also wakes a Write that waits.
func (s *stream) SetWriteDeadline(t time.Time) error {
	return s.waits.unlessOver(func() error { return s.Stream.SetWriteDeadline(t) })
}

// waits are the reads and writes that go on in a session.
type waits struct {
	ended chan struct{} // closed when over is set
	held  *held         // is told too; nil at the guest's end

	mu       sync.Mutex // guards what follows, and the deadlines of streams
	over     bool
	replaced bool // over because another session has begun
	busy     map[*stream]int
}

func newWaits() *waits { return &waits{ended: make(chan struct{}), busy: map[*stream]int{}} }

func (w *waits) enter(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[s]++
	if w.over {
		w.expire(s)
	}
}

// leave tells whether the session has ended.
func (w *waits) leave(s *stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[s]--; w.busy[s] == 0 {
		delete(w.busy, s)
	}
	return w.over
}

// end is called once the session is about to end, and as it ends.
func (w *waits) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	close(w.ended)
	if w.held != nil {
		w.held.end()
	}
	for s := range w.busy {
		w.expire(s)
	}
}

// reset is end for a session that another takes the place of.
func (w *waits) reset() {
	w.mu.Lock()
	w.replaced = !w.over
	w.mu.Unlock()
	w.end()
}

func (w *waits) wasReset() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replaced
}

// expire needs mu.
func (w *waits) expire(s *stream) { _ = s.Stream.SetDeadline(time.Unix(1, 0)) }

func (w *waits) unlessOver(set func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return nil
	}
	return set()
}

// ending is a session's connection, which tells when the session ends: the
// multiplexer closes it first of all, whatever the reason.
type ending struct {
	io.ReadWriteCloser
	waits *waits
}

func (w *ending) Close() error {
	w.waits.end()
	return w.ReadWriteCloser.Close()
}
