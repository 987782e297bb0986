package httphead

import "sync"

// Unhandled knows of a server's connection over HTTP/1 whether its client has said something of which
// no handler was told. net/http answers what is no request by itself, or gives it up, and tells nobody.
// All that is read and written on the connection is reported to it, by whoever stands between net/http
// and the wire, inside of TLS. The zero value is of a new connection. Safe for concurrent use.
//
// That a byte came is not enough to know it by: what is no request may have come together with the good
// one before it, and is read then. But only what a handler was told of is answered by a handler.
type Unhandled struct {
	mu        sync.Mutex // guards both
	handled   bool       // a handler was told of what came last, and the server is not done with that
	something bool       // came, or was answered, and no handler was told of it
}

// Read takes that n bytes came.
func (u *Unhandled) Read(n int) { u.note(n) }

// Wrote takes that n bytes were answered.
func (u *Unhandled) Wrote(n int) { u.note(n) }

func (u *Unhandled) note(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.something = u.something || n > 0 && !u.handled
}

// Handle takes that a handler is told of a request.
func (u *Unhandled) Handle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handled, u.something = true, false
}

// Idle takes that the answer to the last request is out, and another request may come: it is to be
// called at http.StateIdle.
func (u *Unhandled) Idle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handled = false
}

// Something reports whether there is something of which no handler was told: it is to be asked at
// http.StateClosed.
func (u *Unhandled) Something() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.something
}
