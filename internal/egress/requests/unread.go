package requests

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/door"
)

// unread puts on record that a connection brought what is no request: net/http answers
// that by itself, and does not say so. There is one record at most, since what comes after
// such a thing is not read on.
type unread struct {
	refuse func(reason string)
	from   *single
	once   sync.Once
	told   atomic.Bool // of the request that was read last the handler was told
	began  atomic.Bool
	over   chan struct{} // closed when the connection is done with
}

func (c *Carrier) unread(ctx context.Context, from *single) *unread {
	return &unread{from: from, over: make(chan struct{}), refuse: func(reason string) {
		c.config.Refuse(ctx, &Refusal{Rule: door.RuleHostHTTP, Reason: reason}, "")
	}}
}

// watch is the server's hook. Over HTTP/1 each request that was begun is told to it before
// the handler, and the end after all.
func (u *unread) watch(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		u.told.Store(true)
		u.began.Store(true)
	case http.StateActive:
		_, isFramed := conn.(*framed)
		u.told.Store(isFramed)
	case http.StateHijacked:
		close(u.over)
	case http.StateClosed:
		if !u.told.Load() {
			u.tell()
		}
		close(u.over)
	case http.StateIdle:
		u.from.forget() // net/http breaks off its reading ahead
	}
}

// wait returns when nothing more will be told.
func (u *unread) wait() {
	if u.began.Load() {
		<-u.over
	}
}

// tell tells of the request that was begun last over HTTP/1, unless its client has gone.
func (u *unread) tell() {
	switch err := u.from.failure(); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.record("the header of a request did not come in time")
	case err == nil:
		u.record("what came is no request that can be read in one way, or one with too large a header")
	}
}

// broken tells that a client has broken the rules of HTTP/2.
func (u *unread) broken() {
	u.record("what came over HTTP/2 is no request that can be read in one way")
}

func (u *unread) record(reason string) { u.once.Do(func() { u.refuse(reason) }) }
