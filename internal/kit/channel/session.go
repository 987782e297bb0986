package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The multiplexer's limits.
const (
	// GuestWindow is what the guest lets the host have in flight on a stream:
	// downloads, the direction that must be fast.
	GuestWindow = 4 << 20
	// HostWindow is what the host lets the guest have in flight on a stream: the least
	// that the multiplexer can. Memory bounds what all streams hold.
	HostWindow = 256 << 10
	// MaxStreams that a session may have, of both directions and with those
	// half closed. A guest that goes past it loses the session.
	MaxStreams = 512
	// Backlog of streams opened and not accepted yet; an honest opener waits
	// when it is full, for any other the session's own limit holds.
	Backlog = 64
	// opening is how many streams are being opened at a time. A peer that accepts nothing keeps each
	// of them for as long as the session lives; who comes after them waits without one.
	opening = 64
)

// Session is the multiplexer on a channel. Both ends may open streams.
//
// A guest's session is started anew when its host says so (Wire.Renew): all its
// streams fail with ErrReset, and Open and Accept go on with the new ones.
type Session struct {
	trunk *trunk // nil at the host's end

	mu  sync.Mutex // guards now; held while a session is started anew
	now *life
}

// life is a session from its start to its end or reset.
type life struct {
	mux    *yamux.Session
	waits  *waits
	places chan struct{}  // of streams that are being opened
	held   *sessionMemory // nil at the guest's end
}

func newLife(mux *yamux.Session, w *waits, h *sessionMemory) *life {
	return &life{mux, w, make(chan struct{}, opening), h}
}

// NewHostSession starts the host's end. It owns conn, which may be a Wire, from
// now on. Everything that arrives is inspected before the multiplexer sees it;
// a violation ends the session. It is the only session of its process; see Memory.
func NewHostSession(conn io.ReadWriteCloser) (*Session, error) {
	return new(Memory).NewHostSession(conn)
}

// NewHostSession is the function of that name, for one of several sessions that share m.
func (m *Memory) NewHostSession(conn io.ReadWriteCloser) (*Session, error) {
	if wire, ok := conn.(*Wire); ok {
		wire.markFramed()
	}
	w := newWaits()
	h := newSessionMemory(m, w.ended)
	w.held = h
	g := &guard{ReadWriteCloser: conn, held: h}
	e := &ending{g, w}
	h.cut = func() { _ = e.Close() } // the multiplexer sees it
	mux, err := yamux.Client(e, muxConfig(HostWindow))
	if err != nil {
		return nil, fmt.Errorf("start the host's end of a channel: %w", err)
	}
	g.session.Store(mux)
	return &Session{now: newLife(mux, w, h)}, nil
}

// NewGuestSession starts the guest's end. It owns conn from now on.
func NewGuestSession(conn io.ReadWriteCloser) (*Session, error) {
	s := &Session{trunk: &trunk{conn: conn}}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.beginLife()
}

// beginLife starts a life of a guest's session. Needs mu.
func (s *Session) beginLife() error {
	w := newWaits()
	b := &branch{trunk: s.trunk}
	b.renew = func(marker []byte) error { return s.renewLife(b, w, marker) }
	mux, err := yamux.Server(&ending{b, w}, muxConfig(GuestWindow))
	if err != nil {
		return fmt.Errorf("start the guest's end of a channel: %w", err)
	}
	s.now = newLife(mux, w, nil)
	return nil
}

// renewLife ends the life that has b, and begins the next.
func (s *Session) renewLife(b *branch, w *waits, marker []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.resetStreams()
	if err := b.answerMarker(marker); err != nil {
		return err
	}
	return s.beginLife()
}

func (s *Session) currentLife() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (l *life) wrapStream(raw *yamux.Stream) *Conn {
	if l.held != nil {
		l.held.opened(raw)
	}
	return NewConn(&muxStream{Stream: raw, waits: l.waits, held: l.held})
}

// openStream returns ErrReset if the life is over because another has begun.
func (l *life) openStream() (*yamux.Stream, error) {
	raw, err := l.mux.OpenStream()
	if err != nil && l.waits.wasReset() {
		err = ErrReset
	}
	return raw, err
}

// muxConfig is made for a peer that may be frozen for days and then goes on as
// if nothing had been: nothing that only time decides ends a stream or the
// session. No keep-alive, no open or close time-out, and a write waits for as
// long as it takes (yamux has no "never" for it, and a write that times out
// would leave its stream's accounts wrong). A caller that needs a limit sets a deadline
// on the stream or closes the session.
func muxConfig(window uint32) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          Backlog,
		EnableKeepAlive:        false,
		KeepAliveInterval:      time.Hour, // unused, but checked to be positive
		ConnectionWriteTimeout: 20 * 365 * 24 * time.Hour,
		MaxStreamWindowSize:    window,
		StreamOpenTimeout:      0,
		StreamCloseTimeout:     0,
		Logger:                 silent{},
	}
}

// silent discards the multiplexer's log: what matters comes back as an error,
// and the peer must not be able to write our logs.
type silent struct{}

func (silent) Print(...any)          {}
func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// Open opens a stream. It waits while too many are opened and not accepted;
// when ctx ends first, the stream is closed as soon as it opens.
func (s *Session) Open(ctx context.Context) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type opened struct {
		stream *yamux.Stream
		err    error
	}
	now := s.currentLife()
	select {
	case now.places <- struct{}{}:
	case <-now.waits.ended:
		if now.waits.wasReset() {
			return nil, ErrReset
		}
		return nil, yamux.ErrSessionShutdown
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan opened)
	safego.Go(func() {
		defer func() { <-now.places }()
		var o opened
		o.err = safego.Try(func() (err error) {
			o.stream, err = now.openStream()
			return err
		})
		select {
		case done <- o:
		case <-ctx.Done():
			if o.err == nil {
				_ = now.wrapStream(o.stream).Close() // nobody waits for it any more
			}
		}
	})
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return now.wrapStream(o.stream), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the peer to open a stream. After the session ended it
// returns an error.
func (s *Session) Accept() (*Conn, error) {
	now := s.currentLife()
	for {
		stream, err := now.mux.AcceptStream()
		if err == nil {
			return now.wrapStream(stream), nil
		}
		next := s.currentLife()
		if next == now {
			return nil, err
		}
		now = next
	}
}

// Done is closed when the session has ended: closed here, by the peer, or for
// a violation. At the guest's end a reset ends it, too.
func (s *Session) Done() <-chan struct{} { return s.currentLife().mux.CloseChan() }

// Streams is the number of streams that are not closed by both ends.
func (s *Session) Streams() int { return s.currentLife().mux.NumStreams() }

// Close ends the session and all its streams. Bytes that have already arrived on a stream can still be read.
func (s *Session) Close() error {
	if s.trunk != nil {
		_ = s.trunk.conn.Close() // whoever is starting it anew lets go
	}
	now := s.currentLife()
	now.waits.endStreams()
	return now.mux.Close()
}

// IsTimeout tells whether err is a passed deadline of a stream or a socket.
func IsTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}
