package gateway

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/delivery"
)

// maxRounds is how often a file is asked for again whose approval ends just when
// it is to be served.
const maxRounds = 3

// serveRecorded has the serving recorded and sends. A serving that waits for a person is waited for
// first, as long as the client is there; but once it may be served the record has to be whole,
// whether or not the client still is.
func (g *Gateway) serveRecorded(q *query, v verified, waits bool) {
	ask := v.fileAsk()
	var answer door.Answer
	for range maxRounds {
		if waits && !g.awaited(q, v, ask) {
			return
		}
		var j delivery.Judged
		var ok bool
		var err error
		j, answer, ok, err = delivery.Judge(q.r, g.door, door.ServeAsk{FileAsk: ask, Kept: v.kept}, v.filePaths(), v.bytes)
		waits = answer.Decision.Effect == policy.Hold
		switch {
		case err != nil:
			g.refuseUndecided(q, v.ref, err)
			return
		case ok:
			if err := j.Send(q.w, q.r); err != nil {
				g.log.Error("how a download ended is not on record", "sandbox", v.sandbox, "file", v.file.Name, "error", err)
			}
			return
		case !waits:
			q.refuseAnswer(v.ref, answer)
			return
		}
	}
	q.refuseAnswer(v.ref, answer)
}

// awaited asks for a file that waits until it waits no more, and refuses what is
// then not allowed.
func (g *Gateway) awaited(q *query, v verified, ask door.FileAsk) bool {
	ctx := q.came.Context() // nobody is waited for in the place of a client that has gone
	wait := door.AwaitAsk{FileAsk: ask, Bytes: delivery.Bytes(v.bytes, v.filePaths()), Evidence: g.evidence(ctx, v.located, v.found)}
	stop := q.keepWaiting(g.cfg.Limits.Interim)
	answer, err := g.door.Await(ctx, wait)
	stop()
	switch {
	case ctx.Err() != nil:
		q.orLeave() // the request for the approval stays
	case errors.Is(err, door.ErrGone):
		// The daemon ended while a person was waited for. An answer of ours would be
		// final for the client; a broken connection makes it ask again, and that joins
		// the request.
		panic(http.ErrAbortHandler)
	case err != nil:
		g.refuseUndecided(q, v.ref, err)
	case !answer.Decision.Allowed():
		q.refuseAnswer(v.ref, answer)
	default:
		return true
	}
	return false
}

// keepWaiting keeps a client waiting for its answer while a person is asked, for
// which the server sets no time: one that counts the time since the last byte is
// sent "100 Continue", where it is known to skip that. Which do, and what the
// others do, is in docs/approvals-clients.md. The connection is the caller's again
// once stop has returned.
//
// An interim answer to a sandbox that is frozen waits in the connection's
// window; it goes out when the sandbox runs again, which it does before the
// answer comes.
func (q *query) keepWaiting(interim time.Duration) (stop func()) {
	if !countsSinceLastByte(q.r.UserAgent()) || !q.r.ProtoAtLeast(1, 1) {
		return func() {}
	}
	end := make(chan struct{})
	var sender sync.WaitGroup
	safego.In(&sender, func() {
		tick := time.NewTicker(interim)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				q.w.WriteHeader(http.StatusContinue)
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		sender.Wait()
	}
}

// countsSinceLastByte tells the clients whose time limit is one of silence and that
// skip any number of "100 Continue": those on Python's http.client, and pnpm.
func countsSinceLastByte(agent string) bool {
	for _, name := range []string{"pip/", "python-requests/", "python-urllib3/", "Python-urllib/", "poetry/", "pnpm/"} {
		if strings.HasPrefix(agent, name) {
			return true
		}
	}
	return false
}
