package gateway

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/logbook"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// Limits of what is relayed.
const (
	maxPassed = 1 << 20 // bytes, unless the protocol says otherwise
	maxRelays = 40_000  // answers, kept
)

// servePass relays bytes that the client verifies itself. What is about a
// project is judged by the name first, as attachments are.
func (g *Gateway) servePass(q *query) {
	passer, ok := q.source.Protocol.(ecosystem.PassThrough)
	if !ok {
		q.refuse(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway has no such page"})
		return
	}
	if q.route.Project != "" {
		if _, ok := g.takeOwner(q); !ok {
			return
		}
	}
	client, ask, ok := q.source.passing(passer, q.route)
	if !ok {
		q.refuse(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "this is not the transparency log of the upstream, and no other is asked"})
		return
	}
	a := q.metadata(ask.URL)
	settle := func(kinship) {}
	if q.route.Project != "" {
		if !g.shown(a) {
			return
		}
		var err error
		if settle, err = g.guests.ask(q.sandbox, q.ref("").String(), q.admitted, q.r.Context().Done()); err != nil {
			g.refuseFile(a, err)
			return
		}
	}
	body, err := g.relay(q.r.Context(), q.source.log, client, ask, q.route)
	if err != nil {
		a.kin = stranger
	}
	settle(a.kin)
	switch {
	case errors.Is(err, fault.ErrNotFound):
		q.refuse(ecosystem.Refusal{Cause: ecosystem.Missing, Reason: sentence(err)})
	case err != nil:
		g.refuseFile(a, err)
	case g.show(a, door.ShownRelayed, a.file.Name, body):
		q.w.Header().Set("Content-Type", passedType(body))
		http.ServeContent(q.w, q.r, "", time.Time{}, bytes.NewReader(body))
	}
}

// passedType is chosen here: a relayed answer is never something that a client
// would run or show as a page.
func passedType(body []byte) string {
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// passing says whom to ask for what a route passes through. Where the upstream's
// digests come from a log, only that log is passed through.
func (s *source) passing(passer ecosystem.PassThrough, r ecosystem.Route) (client *upstream.Client, ask ecosystem.Ask, ok bool) {
	ask = passer.PassAsk(s.Index, r)
	if _, witness := s.Protocol.(ecosystem.Witness); !witness {
		return s.Client, ask, true
	}
	if s.log == nil || r.Log != s.log.Name() { // names of logs are a way out
		return nil, ask, false
	}
	ask.URL, ok = s.log.Ask(ask.URL)
	return s.log.Client(), ask, ok
}

// relay gives the answer to an ask. A kept one stands for it if it never
// changes, or while the upstream is down: what is relayed proves itself or
// nothing, however old it is. Only whole answers of the upstream's are kept.
// l is the log that the answer is of; nil if it is of none.
func (g *Gateway) relay(ctx context.Context, l *logbook.Book, client *upstream.Client, ask ecosystem.Ask, r ecosystem.Route) ([]byte, error) {
	old, have := g.keptRelay(ask, r)
	if have && r.Immutable {
		return old, nil
	}
	if l != nil && r.Records > 0 {
		if err := l.Holds(ctx, r.Records); err != nil {
			return nil, err
		}
	}
	body, err := flight.Once(ctx, g.flights, passing{ask.URL}, func(ctx context.Context) ([]byte, error) {
		body, err := small(ctx, client, ask, maxPassed)
		if err != nil {
			return nil, err
		}
		g.keepRelay(ask, r, body)
		return body, nil
	})
	if have && errors.Is(err, fault.ErrUnavailable) && ctx.Err() == nil {
		body, err = old, nil
	}
	if err == nil && l != nil {
		l.NoteHead(body)
	}
	return body, err
}

// keptRelay gives what is kept of an answer. A part of what only grows is kept
// as the longest part that was seen, whose beginnings are all the shorter ones:
// so clients that met the log at another size can verify without the upstream.
func (g *Gateway) keptRelay(ask ecosystem.Ask, r ecosystem.Route) ([]byte, bool) {
	body, ok := g.relays.Get(relayKeyOf(ask, r))
	if !ok || len(body) < r.Part {
		return nil, false
	}
	if r.Part > 0 {
		body = body[:r.Part]
	}
	return body, true
}

// keepRelay keeps an answer; a part only if it is one, and longer than the one
// that is kept.
func (g *Gateway) keepRelay(ask ecosystem.Ask, r ecosystem.Route, body []byte) {
	if _, longer := g.keptRelay(ask, r); r.Part > 0 && (longer || len(body) != r.Part) {
		return
	}
	g.relays.Put(relayKeyOf(ask, r), body)
}

// passing is the key of a flight: what is asked.
type passing struct{ url string }

// relayKey names an answer, or all parts of what only grows.
type relayKey string

// String implements kept.Key.
func (k relayKey) String() string { return string(k) }

func relayKeyOf(ask ecosystem.Ask, r ecosystem.Route) relayKey {
	if r.Part == 0 {
		return relayKey(ask.URL)
	}
	return relayKey(strings.TrimSuffix(ask.URL, strings.TrimPrefix(r.File, r.Whole)))
}
