package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// How often a refused caller is on record: who is refused a thousand times a
// second must not fill the log.
const (
	refusalEvery = time.Minute
	maxRefusals  = 1_000 // different ones that are remembered
)

// enter lets a request in or says why not. Refusals are on record.
func (s *Server) enter(r *http.Request, to route) (*http.Request, error) {
	who, err := s.identify(r)
	if err != nil {
		if to.who == anyone {
			return r, nil
		}
		s.refused(r.Context(), "", "a caller without a valid token", to)
		return nil, err
	}
	if !who.may(to.who) {
		s.refused(r.Context(), who.token.ID, who.name, to)
		return nil, fault.New(fault.ErrForbidden, "the token %q may not do that; it is for %s", who.token.Name, to.who)
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, who)), nil
}

// during has a request that was let in for a token end with the token's validity, and
// hold no more than the token may.
func (s *Server) during(r *http.Request) (bound *http.Request, stop func()) {
	who, err := callerOf(r.Context())
	if err != nil || who.token == nil {
		return r, func() {}
	}
	ctx, over := s.cfg.Tokens.During(r.Context(), who.token.ID)
	ctx, leave := s.cfg.Room.Enter(ctx, who.token.ID)
	return r.WithContext(ctx), func() {
		leave()
		over()
	}
}

// Refused records that a caller without a valid token asked for another wire of the daemon's.
func (s *Server) Refused(ctx context.Context, path string) {
	s.refused(ctx, "", "a caller without a valid token", route{pattern: path})
}

// refused records that a caller was turned away from a route.
func (s *Server) refused(ctx context.Context, token, name string, to route) {
	count, due := s.refusals.note(token+" "+to.pattern, time.Now())
	if !due || s.cfg.Log == nil {
		return
	}
	_, err := s.cfg.Log.Append(context.WithoutCancel(ctx), audit.Record{
		Kind: audit.KindDaemon, Outcome: audit.Blocked, User: name, Token: token, Count: count,
		Reason: "The API was asked for something that the caller may not do.",
		Detail: map[string]string{"event": "api_refused", "route": to.pattern},
	})
	if err != nil { // the caller is refused in any case
		s.cfg.Logger.ErrorContext(ctx, "a refused request is not on record", "route", to.pattern, "err", err)
	}
}

// refusals counts who was refused what, and tells when that is due for the record.
type refusals struct {
	mu   sync.Mutex // guards seen
	seen map[string]*refusal
}

type refusal struct {
	recorded time.Time
	count    int // since then
}

// note counts one; due says that count of them are to be recorded now.
func (r *refusals) note(what string, now time.Time) (count int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.seen[what]
	if known == nil {
		if r.seen == nil || len(r.seen) >= maxRefusals {
			r.seen = map[string]*refusal{}
		}
		known = &refusal{}
		r.seen[what] = known
	}
	known.count++
	if !known.recorded.IsZero() && now.Sub(known.recorded) < refusalEvery {
		return 0, false
	}
	count, known.recorded, known.count = known.count, now, 0
	return count, true
}

// own returns the sandbox that a request names. One of another owner is
// fault.ErrNotFound, as one that there is not, and so is, for a token, what stands in for its
// sandbox.
func (s *desk) own(r *http.Request) (*sandbox.Sandbox, error) {
	return s.ownBox(r, r.PathValue("id"))
}

func (s *desk) ownBox(r *http.Request, id string) (*sandbox.Sandbox, error) {
	who, err := callerOf(r.Context())
	if err != nil {
		return nil, err
	}
	if s.cfg.Sandboxes == nil {
		return nil, errNotWired
	}
	return backend.Find(s.cfg.Sandboxes, id, who.viewer())
}

// errNotWired: this daemon lacks the part that a route needs.
var errNotWired = fault.New(fault.ErrUnavailable, "this daemon can't do that")
