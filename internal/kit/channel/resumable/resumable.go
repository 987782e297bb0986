// Package resumable is a stream of bytes, both ways, whose connections may break and be made
// anew: each byte arrives once and in order, whatever was lost with a connection.
//
// A tether has two ends, and one connection (line) at a time. An end keeps what it has sent until
// the other end says that it has it; a new line begins with both ends saying how much they have. An
// end's state is all that another process needs to go on in its place.
//
// A machine that was written to disk has lost its connections when it goes on. With a tether
// its channel is where it was, also in a copy of the machine. The other end may be hostile: it
// can break the tether, and can't have this end keep more than a window.
package resumable

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// window is how much is kept that the other end has not said it has.
	window = 256 << 10
	// tellAfter is how much is received before the other end is told.
	tellAfter = window / 4
)

// ErrBroken tells that the other end does not speak as an end does.
var ErrBroken = errors.New("the other end of the channel does not keep to its form")

// Conn is what a line needs of a connection.
type Conn interface {
	io.ReadWriteCloser
	SetDeadline(t time.Time) error
}

// State is an end between two lines. Positions count the bytes of a direction from its begin.
type State struct {
	Received uint64 `json:"received"` // bytes that were passed on
	Base     uint64 `json:"base"`     // the position of what is pending
	Pending  []byte `json:"pending"`  // sent, and not known to have arrived
}

// End is one end. Read or Deliver, and Write or Feed, are for one caller each; the others may
// be called at any time. Somebody must read, also where only writing matters: what the other
// end has comes in between what it sends.
type End struct {
	attaching sync.Mutex // held over an Attach
	passing   sync.Mutex // held over the passing on of what is then counted

	mu       sync.Mutex  // guards what follows; never held over what may wait
	line     *connection // nil between two
	held     bool        // no line is wanted
	over     error       // why it has ended; nil while it has not
	received uint64
	base     uint64
	pending  []byte
	changed  chan struct{} // closed, and made anew, when any of these changes
}

// New makes an end without a line, at the begin of the stream.
func New() *End { return &End{changed: make(chan struct{})} }

// wakeWaiters has everybody look who waits for a change. Needs mu.
func (e *End) wakeWaiters() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// waitUntil waits until ready, which is called with mu held, says yes. It returns why the end is
// over, if it is.
func (e *End) waitUntil(ready func() bool) error {
	for {
		e.mu.Lock()
		over, ok, changed := e.over, ready(), e.changed
		e.mu.Unlock()
		if over != nil || ok {
			return over
		}
		<-changed
	}
}

// Close ends it: what waits for it returns.
func (e *End) Close() error {
	e.endWith(net.ErrClosed)
	return nil
}

func (e *End) endWith(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over != nil {
		return
	}
	e.over = why
	e.detach()
}

// detach takes the line away. Needs mu.
func (e *End) detach() {
	if e.line != nil {
		_ = e.line.conn.Close()
	}
	e.line = nil
	e.wakeWaiters()
}

// dropLine takes a line away that has broken, unless there is another already.
func (e *End) dropLine(l *connection) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.line == l {
		e.detach()
	}
}

// Unattached returns when a line is wanted and there is none, or why the end is over.
func (e *End) Unattached() error {
	return e.waitUntil(func() bool { return e.line == nil && !e.held })
}

// Hold takes the line away until Resume; nothing that arrives afterwards is passed on. It
// returns the end's state, which is whole: what came before is passed on and counted.
func (e *End) Hold() State {
	e.mu.Lock()
	e.held = true
	e.detach()
	e.mu.Unlock()
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return State{Received: e.received, Base: e.base, Pending: bytes.Clone(e.pending)}
}

// Resume takes a Hold back: a line is wanted, a new one.
func (e *End) Resume() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = false
	e.detach()
}

// Restore makes this end, which has had no line yet, go on from a state.
func (e *End) Restore(s State) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.received+e.base+uint64(len(e.pending)) != 0 || len(s.Pending) > window {
		return ErrBroken
	}
	e.received, e.base, e.pending = s.Received, s.Base, bytes.Clone(s.Pending)
	e.wakeWaiters()
	return nil
}
