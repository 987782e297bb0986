package gateway

import (
	"context"
	"errors"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Limits of what is relayed.
const (
	maxPassed = 1 << 20 // bytes, unless the protocol says otherwise
	maxRelays = 40_000  // answers, kept
)

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

// relays are answers of upstreams that clients verify themselves.
type relays struct {
	flights *coalesce.Group
	kept    *memo.Disk[relayKey, []byte]
}

func newRelays(cfg Config, store *cache.Store, flights *coalesce.Group) (*relays, error) {
	disk, err := memo.NewDisk(store, "relays", maxRelays, memo.Bytes[relayKey](), cfg.Log, "a relayed answer")
	return &relays{flights: flights, kept: disk}, err
}

// getAnswer gives the answer to an ask. A kept one stands for it if it never
// changes, or while the upstream is down: what is relayed proves itself or
// nothing, however old it is. Only whole answers of the upstream's are kept.
// The answer may be of the source's log, which is asked by a client of its own.
func (rs *relays) getAnswer(ctx context.Context, s *source, client *upstream.Client, ask ecosystem.Ask, r ecosystem.Route) ([]byte, error) {
	l := s.log
	old, have := rs.oldAnswer(ask, r)
	if have && r.Immutable {
		return old, nil
	}
	if l != nil && r.Records > 0 {
		if err := l.Holds(ctx, r.Records); err != nil {
			return nil, err
		}
	}
	body, err := coalesce.Once(ctx, rs.flights, passing{ask.URL}, func(ctx context.Context) ([]byte, error) {
		body, err := fetchSmall(ctx, client, ask, maxPassed, subjectOf(s, r))
		if err != nil {
			return nil, err
		}
		rs.keepAnswer(ask, r, body)
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

// oldAnswer gives what is kept of an answer. A part of what only grows is kept
// as the longest part that was seen, whose beginnings are all the shorter ones:
// so clients that met the log at another size can verify without the upstream.
func (rs *relays) oldAnswer(ask ecosystem.Ask, r ecosystem.Route) ([]byte, bool) {
	body, ok := rs.kept.Get(relayKeyOf(ask, r))
	if !ok || len(body) < r.Part {
		return nil, false
	}
	if r.Part > 0 {
		body = body[:r.Part]
	}
	return body, true
}

// keepAnswer keeps an answer; a part only if it is one, and longer than the one
// that is kept.
func (rs *relays) keepAnswer(ask ecosystem.Ask, r ecosystem.Route, body []byte) {
	if _, longer := rs.oldAnswer(ask, r); r.Part > 0 && (longer || len(body) != r.Part) {
		return
	}
	rs.kept.Put(relayKeyOf(ask, r), body)
}

// passing is the key of a flight: what is asked.
type passing struct{ url string }

// relayKey names an answer, or all parts of what only grows.
type relayKey string

// String implements memo.Key.
func (k relayKey) String() string { return string(k) }

func relayKeyOf(ask ecosystem.Ask, r ecosystem.Route) relayKey {
	if r.Part == 0 {
		return relayKey(ask.URL)
	}
	return relayKey(strings.TrimSuffix(ask.URL, strings.TrimPrefix(r.File, r.Whole)))
}
