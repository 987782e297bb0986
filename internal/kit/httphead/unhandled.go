package httphead

import (
	"net/http"
	"sync"
)

// Unhandled knows of a server's connection over HTTP/1 whether its client has said something of which
// no handler was told. net/http answers what is no request by itself, or gives it up, and tells nobody.
// All that is read and written on the connection is reported to it, by whoever stands between net/http
// and the wire, inside of TLS. The zero value is of a new connection. Safe for concurrent use.
//
// That a byte came is not enough to know it by: what is no request, or half of one, may have come together
// with the good one before it. So what comes is taken apart at the ends of requests. And what net/http answers
// while no handler is at work is none of a handler's.
type Unhandled struct {
	mu       sync.Mutex // guards what follows
	framing  framing
	handled  bool // a handler was told of what came last, and the server is not done with that
	answered bool // something was answered, and no handler was told of it
	failed   error
}

// Read takes what came, and with what error.
func (u *Unhandled) Read(b []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.framing.takeBytes(b)
	u.failed = err
}

// Failure is with what the last reading failed; nil: it did not.
func (u *Unhandled) Failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failed
}

// Wrote takes that n bytes were answered.
func (u *Unhandled) Wrote(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answered = u.answered || n > 0 && !u.handled
}

// Handle takes that a handler is told of a request. It comes before any of the request's body is read.
func (u *Unhandled) Handle(r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handled, u.answered = true, false
	u.framing.handle(r)
}

// Idle takes that the answer to the last request is out, and another request may come: it is to be
// called at http.StateIdle.
func (u *Unhandled) Idle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handled = false
	u.failed = nil // net/http breaks off its reading ahead
}

// Hijacked takes that something else is spoken from now on: it is to be called at http.StateHijacked.
func (u *Unhandled) Hijacked() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.framing.stopHTTP()
}

// Something reports whether there is something of which no handler was told: it is to be asked at
// http.StateClosed.
func (u *Unhandled) Something() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answered || u.framing.unheard()
}
