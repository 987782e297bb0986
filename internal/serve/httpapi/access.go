package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// How often a refused caller is on record: who is refused a thousand times a
// second must not fill the log.
const (
	refusalEvery = time.Minute
	maxRefusals  = 1_000 // different ones that are remembered
)

// enterRequest lets a request in or says why not. Refusals are on record, and of each caller and route one waits for that in a
// minute. A caller that shows no valid token and is let in is counted until leave, which is called once, with an error too: no
// stranger has the daemon hold any number of answers. A refusal is not, so that no others keep it off the record.
func (s *Server) enterRequest(r *http.Request, to route) (entered *http.Request, leave func(), err error) {
	nobody := func() {}
	who, unknown := s.identify(r)
	if unknown != nil && to.who == anyone {
		if leave, err = s.cfg.Underway.JoinStranger(r); err != nil {
			return nil, nobody, err
		}
		return r, leave, nil
	}
	if unknown != nil {
		s.refused(r.Context(), "", "a caller without a valid token", to)
		return nil, nobody, unknown
	}
	if !who.mayUse(to.who) {
		s.refused(r.Context(), who.token.ID, who.name, to)
		return nil, nobody, fault.New(fault.ErrForbidden, "the token %q may not do that; it is for %s", who.token.Name, to.who)
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, who)), nobody, nil
}

// during has a request that was let in for a token end with the token's validity, and
// hold no more than the token may. fault.ErrExhausted: too many of its requests are under way.
func (s *Server) during(r *http.Request) (bound *http.Request, stop func(), err error) {
	who, err := callerOf(r.Context())
	if err != nil || who.token == nil {
		return r, func() {}, nil //nolint:nilerr // of a caller that nobody knows there is nothing to bound
	}
	counted, err := s.cfg.Underway.Join(who.token.ID, r)
	if err != nil {
		return r, nil, err
	}
	ctx, over := s.cfg.Tokens.During(r.Context(), who.token.ID)
	ctx, leave := s.cfg.Room.Enter(ctx, who.token.ID)
	stop = func() {
		leave()
		over()
		counted()
	}
	if err := backend.Buffered(ctx, r); err != nil {
		stop()
		return r, nil, err
	}
	return r.WithContext(ctx), stop, nil
}

// Refused records that a caller without a valid token asked for another wire of the daemon's.
func (s *Server) Refused(ctx context.Context, path string) {
	s.refused(ctx, "", "a caller without a valid token", route{pattern: path})
}

// refused records that a caller was turned away from a route.
func (s *Server) refused(ctx context.Context, token, name string, to route) {
	s.recordRefused(ctx, s.refusals.noteRefusal(refusedCaller{token: token, name: name, route: to.pattern}, time.Now()))
}

// RecordRefused records of callers who were turned away what is not on record yet and has waited for
// long enough; all of it: the daemon ends.
func (s *Server) RecordRefused(ctx context.Context, all bool) {
	s.recordRefused(ctx, s.refusals.takeDue(time.Now(), all))
}

// refusedTime bounds how long a record of a refused request may take to be written: nobody waits for one
// longer, neither the caller who is refused nor a daemon that ends.
const refusedTime = 30 * time.Second

// recordRefused puts them on record. A refusal that the log does not take is counted on, and so are the rest then:
// each could wait as long for a log that hangs.
func (s *Server) recordRefused(ctx context.Context, all []refusedCount) {
	if s.cfg.Log == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusedTime)
	defer cancel()
	for i, due := range all {
		_, err := s.cfg.Log.Append(ctx, audit.Record{
			Kind: audit.KindDaemon, Outcome: audit.Blocked, User: due.name, Token: due.token, Count: due.count,
			Reason: "The API was asked for something that the caller may not do.",
			Detail: map[string]string{"event": "api_refused", "route": due.route},
		})
		if err != nil { // the caller is refused in any case
			s.refusals.countBack(all[i:])
			s.cfg.Logger.ErrorContext(ctx, "a refused request is not on record; it is tried again", "route", due.route, "err", err)
			return
		}
	}
}

// refusals counts who was refused what, and tells when that is due for the record.
type refusals struct {
	mu   sync.Mutex // guards seen
	seen map[refusedCaller]*refusal
}

// refusedCaller is who was refused what.
type refusedCaller struct{ token, name, route string }

// refusedCount is how often one is to be recorded to have been refused.
type refusedCount struct {
	refusedCaller
	count int
}

type refusal struct {
	recorded time.Time
	count    int // since then
}

// noteRefusal counts one, and returns what is to be recorded now: the first of each at once, and those that
// have to make room for it.
func (r *refusals) noteRefusal(who refusedCaller, now time.Time) []refusedCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []refusedCount
	known := r.seen[who]
	if known == nil {
		if len(r.seen) >= maxRefusals {
			due = r.takeDueLocked(now, true)
			r.seen = nil
		}
		if r.seen == nil {
			r.seen = map[refusedCaller]*refusal{}
		}
		known = &refusal{}
		r.seen[who] = known
	}
	known.count++
	if known.recorded.IsZero() || now.Sub(known.recorded) >= refusalEvery {
		due = append(due, refusedCount{who, known.count})
		known.recorded, known.count = now, 0
	}
	return due
}

// takeDue takes what is to be recorded: what has waited for long enough, or all.
func (r *refusals) takeDue(now time.Time, all bool) []refusedCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeDueLocked(now, all)
}

// takeDueLocked takes what is to be recorded; mu is held. One that is not refused any more is forgotten.
func (r *refusals) takeDueLocked(now time.Time, all bool) []refusedCount {
	var due []refusedCount
	for who, known := range r.seen {
		if !all && now.Sub(known.recorded) < refusalEvery {
			continue
		}
		if known.count == 0 {
			delete(r.seen, who)
			continue
		}
		due = append(due, refusedCount{who, known.count})
		known.recorded, known.count = now, 0
	}
	return due
}

// countBack counts on what could not be recorded. There is room for more than there may be: the next that is new
// has them recorded.
func (r *refusals) countBack(all []refusedCount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[refusedCaller]*refusal{}
	}
	for _, due := range all {
		known := r.seen[due.refusedCaller]
		if known == nil {
			known = &refusal{recorded: time.Now()}
			r.seen[due.refusedCaller] = known
		}
		known.count += due.count
	}
}

// ownSandbox returns the sandbox that a request names. One of another owner is
// fault.ErrNotFound, as one that there is not, and so is, for a token, what stands in for its
// sandbox.
func (s *desk) ownSandbox(r *http.Request) (*sandbox.Sandbox, error) {
	return s.ownBox(r, r.PathValue("id"))
}

// ownAwake is own for a request that works in the sandbox: it waits for one that thaws.
func (s *desk) ownAwake(r *http.Request) (*sandbox.Sandbox, error) {
	sb, err := s.ownSandbox(r)
	if err == nil {
		backend.AwaitThaw(r.Context(), sb)
	}
	return sb, err
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
