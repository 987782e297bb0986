package requests

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
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
		u.told.Store(speaksHTTP2(conn))
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

func speaksHTTP2(conn net.Conn) bool {
	ended, ok := conn.(*tls.Conn)
	return ok && ended.ConnectionState().NegotiatedProtocol == "h2"
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

// count is HTTP/2's hook. It is called for what has gone wrong, by what that has ended, the
// error's code, and a word for it.
func (u *unread) count(what string) {
	if slices.ContainsFunc(noRequests(), func(word string) bool { return strings.HasSuffix(what, "_"+word) }) {
		u.record("what came over HTTP/2 is no request that can be read in one way")
	}
}

// noRequests are those words that are about what a client should not say; the others are
// also about connections that end.
func noRequests() []string {
	return []string{
		"bad_connect", "bad_path_method", "bad_path", "userinfo_in_authority", "dup_trailers", "trailers_not_ended",
		"trailers_pseudo", "trailers_bogus", "headers_even", "send_too_much", "data_on_idle", "stream_idle",
		"first_settings", "push_promise", "too_many_early_resets",
	}
}

func (u *unread) record(reason string) { u.once.Do(func() { u.refuse(reason) }) }
