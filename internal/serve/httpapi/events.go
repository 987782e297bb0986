package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// events streams what happens to the caller's sandboxes as JSON lines, until the
// client goes away or is too slow; it may ask again from the last one that it has.
func (s sandboxRoutes) events(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if err := checkQueryKeys(q, "after", "sandbox"); err != nil {
		return err
	}
	after, err := parseNumber(q.Get("after"))
	switch {
	case err != nil:
		return err
	case s.cfg.Sandboxes == nil:
		return errNotWired
	case int64(after) < 0:
		return fault.Invalid("after=%d is no event's number", after)
	}
	if !by.seesAll() {
		after = s.positions.reveal(by.token.ID, after)
	}
	if by.token != nil {
		leave, err := s.listeners.joinStream(by.token.ID)
		if err != nil {
			return err
		}
		defer leave()
	}
	events, err := s.cfg.Sandboxes.Events(r.Context(), int64(after))
	switch {
	case errors.Is(err, fault.ErrInvalid) && !by.seesAll(): // it says which is the newest of all
		return fault.Invalid("after=%s is the number of no event that this token was told of; ask from 0 for all that are kept", q.Get("after"))
	case err != nil:
		return err
	}
	box := q.Get("sandbox")
	return streamEvents(w, events, func(e *sandbox.Event) bool { return (box == "" || e.Sandbox == box) && s.showEvent(by, e) })
}

// showEvent tells whether a caller sees an event, and leaves of it what it sees.
func (s sandboxRoutes) showEvent(by caller, e *sandbox.Event) bool {
	if by.seesAll() {
		return true
	}
	e.Seq = int64(s.positions.conceal(by.token.ID, uint64(e.Seq)))
	return e.Token == by.token.ID
}

// streamEvents sends those that are wanted, as wanted leaves them, until there are no more.
func streamEvents(w http.ResponseWriter, events <-chan sandbox.Event, wanted func(*sandbox.Event) bool) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	if err := flush.Flush(); err != nil { // the client knows now that it is heard
		return errAnswered
	}
	for e := range events {
		if !wanted(&e) {
			continue
		}
		if err := out.Encode(shownEvent(e)); err != nil {
			return errAnswered
		}
		if err := flush.Flush(); err != nil {
			return errAnswered
		}
	}
	return nil
}

func shownEvent(e sandbox.Event) api.Event {
	return api.Event{
		Seq: e.Seq, Time: e.Time, Sandbox: e.Sandbox, Run: e.Run, Token: e.Token,
		From: string(e.From), To: string(e.To), Reason: e.Reason,
	}
}

// maxListeners is how many streams of events a token may have: the daemon has a
// bound for all, and one client must not take it up.
const maxListeners = 8

// listeners are who reads events, by token.
type listeners struct {
	mu      sync.Mutex // guards streams
	streams map[string]int
}

// joinStream counts a stream in; leave counts it out.
func (l *listeners) joinStream(token string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[token] >= maxListeners {
		return nil, fault.Exhausted(0, "the token reads events %d times already; end one of these requests first", maxListeners)
	}
	if l.streams == nil {
		l.streams = map[string]int{}
	}
	l.streams[token]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.streams[token]--; l.streams[token] == 0 {
			delete(l.streams, token)
		}
	}, nil
}
