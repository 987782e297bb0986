package channel

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// muxStream is a stream of a session. When the session ends, the multiplexer lets
// everybody who waits in one of its reads or writes run in circles until it
// gets round to closing their stream, and with some hundred of them on few
// processors it does not get round to it for minutes: one guest with many
// streams would take the host's processors at its death. So a stream that is
// being read or written is known to its session, which gives it a passed
// deadline as it ends: that ends the circles.
type muxStream struct {
	*yamux.Stream
	waits *waits
	held  *sessionMemory // nil at the guest's end
}

var _ net.Conn = (*muxStream)(nil)

// Read returns io.EOF when the peer has closed, or the session has ended and
// all that had arrived is read; after a reset it is ErrReset.
func (s *muxStream) Read(p []byte) (int, error) {
	s.waits.enterStream(s)
	n, err := s.Stream.Read(p)
	if s.held != nil {
		s.held.noteRead(s.Stream, n, err != nil && !IsTimeout(err))
	}
	over := s.waits.leaveStream(s)
	switch {
	case over && err != nil && s.waits.wasReset():
		err = ErrReset
	case over && errors.Is(err, yamux.ErrTimeout):
		err = io.EOF
	}
	return n, err
}

// Write waits for the peer's window.
func (s *muxStream) Write(p []byte) (int, error) {
	s.waits.enterStream(s)
	n, err := s.Stream.Write(p)
	over := s.waits.leaveStream(s)
	switch {
	case over && err != nil && s.waits.wasReset():
		err = ErrReset
	case over && errors.Is(err, yamux.ErrTimeout):
		err = yamux.ErrSessionShutdown
	}
	return n, err
}

// Close tells the peer that nothing more comes; reading goes on.
func (s *muxStream) Close() error {
	err := s.Stream.Close()
	if s.held != nil {
		s.held.closed(s.Stream)
	}
	return err
}

// SetDeadline sets both deadlines, as SetReadDeadline and SetWriteDeadline do.
func (s *muxStream) SetDeadline(t time.Time) error {
	return s.waits.unlessOver(func() error { return s.Stream.SetDeadline(t) })
}

// SetReadDeadline also wakes a Read that waits.
func (s *muxStream) SetReadDeadline(t time.Time) error {
	return s.waits.unlessOver(func() error { return s.Stream.SetReadDeadline(t) })
}

// SetWriteDeadline also wakes a Write that waits.
func (s *muxStream) SetWriteDeadline(t time.Time) error {
	return s.waits.unlessOver(func() error { return s.Stream.SetWriteDeadline(t) })
}

// waits are the reads and writes that go on in a session.
type waits struct {
	ended chan struct{}  // closed when over is set
	held  *sessionMemory // is told too; nil at the guest's end

	mu       sync.Mutex // guards what follows, and the deadlines of streams
	over     bool
	replaced bool // over because another session has begun
	busy     map[*muxStream]int
}

func newWaits() *waits { return &waits{ended: make(chan struct{}), busy: map[*muxStream]int{}} }

func (w *waits) enterStream(s *muxStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[s]++
	if w.over {
		w.expire(s)
	}
}

// leaveStream counts one out of a stream, and tells whether the session has ended.
func (w *waits) leaveStream(s *muxStream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[s]--; w.busy[s] == 0 {
		delete(w.busy, s)
	}
	return w.over
}

// endStreams ends all streams; it is called once the session is about to end, and as it ends.
func (w *waits) endStreams() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	close(w.ended)
	if w.held != nil {
		w.held.endSession()
	}
	for s := range w.busy {
		w.expire(s)
	}
}

// resetStreams ends all streams of a session that another takes the place of.
func (w *waits) resetStreams() {
	w.mu.Lock()
	w.replaced = !w.over
	w.mu.Unlock()
	w.endStreams()
}

func (w *waits) wasReset() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replaced
}

// expire needs mu.
func (w *waits) expire(s *muxStream) { _ = s.Stream.SetDeadline(time.Unix(1, 0)) }

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
	w.waits.endStreams()
	return w.ReadWriteCloser.Close()
}
