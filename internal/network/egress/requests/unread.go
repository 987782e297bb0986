package requests

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// unread puts on record that a connection brought what is no request: net/http answers
// that by itself, and does not say so. Over HTTP/1 there is one record at most, since what
// comes after such a thing is not read on.
type unread struct {
	refuse func(reason string)
	once   sync.Once
	http1  httphead.Unhandled
	began  atomic.Bool
	over   chan struct{} // closed when the connection is done with

	// brokeOff tells of HTTP/2 whether the last that came is half of what begins a request; nil: it is not spoken.
	brokeOff func() bool
	// Requests of HTTP/2: those that the client has begun, those of which the handler was told, and
	// those that are on record as what is none.
	begun, handled, broke atomic.Int64
}

func newUnread(refuse func(reason string)) *unread {
	return &unread{over: make(chan struct{}), refuse: refuse}
}

func (c *Carrier) unread(ctx context.Context) *unread {
	return newUnread(func(reason string) {
		c.config.Refuse(ctx, &Refusal{Rule: door.RuleHostHTTP, Reason: reason}, "")
	})
}

// ServeOne has a server of HTTP/1 serve one connection until it ends. refuse is called once for
// what the server answers by itself, since it is no request.
func ServeOne(conn net.Conn, server *http.Server, refuse func(reason string)) {
	one := newSingle(conn, conn)
	unread := newUnread(refuse)
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unread.handle(r)
		handler.ServeHTTP(w, r)
	})
	server.ConnState = unread.watchState
	server.DisableGeneralOptionsHandler = true
	one.offerConn(unread.overhear(one))
	_ = server.Serve(one) // it ends with the connection
	unread.awaitTold()
}

// handle takes that the handler was told of a request.
func (u *unread) handle(r *http.Request) {
	if u.brokeOff == nil {
		u.http1.Handle(r)
	}
	u.handled.Add(1)
}

// overhear is a connection to be served over HTTP/1.
func (u *unread) overhear(conn net.Conn) net.Conn {
	one := overheard{Conn: conn, by: &u.http1}
	if session, ok := conn.(*tls.Conn); ok {
		return &overheardTLS{one, session}
	}
	return &one
}

// watchState serves as the server's hook. It is told the end after all else. HTTP/2 is not overheard: settle tells of that.
func (u *unread) watchState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		u.began.Store(true)
	case http.StateActive:
	case http.StateHijacked:
		u.http1.Hijacked()
		close(u.over)
	case http.StateClosed:
		if u.http1.Something() {
			u.tellBegun()
		}
		close(u.over)
	case http.StateIdle:
		u.http1.Idle()
	}
}

// awaitTold returns when nothing more will be told.
func (u *unread) awaitTold() {
	if u.began.Load() {
		<-u.over
	}
}

// mostUnhandled bounds how often one connection's requests are told of that nobody was told
// of: more say no more.
const mostUnhandled = 100

// settleHTTP2 tells of the requests that were begun over HTTP/2 and that the server has answered by
// itself, once the connection is over. They have a field that HTTP/2 does not have, or too
// many; or the client had too many under way.
func (u *unread) settleHTTP2() {
	for range min(u.begun.Load()-u.handled.Load()-u.broke.Load(), mostUnhandled) {
		u.refuse("a request over HTTP/2 can't be read in one way, has too large a header, or was one too many at a time")
	}
	if u.brokeOff != nil && u.brokeOff() {
		u.recordUnread("a request over HTTP/2 broke off in its header")
	}
}

// tellBegun tells of the request that was begun last over HTTP/1.
func (u *unread) tellBegun() {
	switch err := u.http1.Failure(); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.recordUnread("the header of a request did not come in time")
	case err == nil:
		u.recordUnread("what came is no request that can be read in one way, has too large a header, or came behind one that ended the connection")
	default:
		u.recordUnread("a request broke off in its header")
	}
}

// broken tells that a client has broken the rules of HTTP/2. That stands for a request only if there is
// one of which the handler was not told: what broke them may belong to another.
func (u *unread) broken() {
	u.once.Do(func() {
		if u.begun.Load() > u.handled.Load() {
			u.broke.Add(1)
		}
		u.refuse("what came over HTTP/2 is no request that can be read in one way")
	})
}

func (u *unread) recordUnread(reason string) { u.once.Do(func() { u.refuse(reason) }) }
