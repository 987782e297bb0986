package turns

import (
	"context"
	"slices"
	"sync"
)

// Limits of what is shared.
type Limits struct {
	All  int // turns at a time
	Each int // that one guest may have of these
	// Sure are those that each guest may have, whatever the others have; Most is
	// the end even of these. 0: none is sure.
	Sure, Most int
}

// Shares give turns: next is always the guest that has the fewest, then who has
// waited for longest.
type Shares struct {
	limits Limits

	mu      sync.Mutex // guards what follows
	all     int
	had     map[string]int // by guest
	waiting []*waiter      // in the order in which they came
}

// waiter is somebody who waits for a turn. guest is set when it is given.
type waiter struct {
	party *Party
	guest string
	given chan struct{}
}

// New makes shares.
func New(l Limits) *Shares { return &Shares{limits: l, had: map[string]int{}} }

// Take waits for a turn for the party that ctx is for, and tells for which guest
// of it the turn counts. The caller gives it back by release, once. The error is
// that of ctx.
func (s *Shares) Take(ctx context.Context) (guest string, release func(), err error) {
	w := &waiter{party: Of(ctx), given: make(chan struct{})}
	grew := w.party.growth()
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.give()
	s.mu.Unlock()
	for {
		select {
		case <-w.given:
			return w.guest, sync.OnceFunc(func() { s.release(w.guest) }), nil
		case <-grew:
			grew = w.party.growth()
			s.mu.Lock()
			s.give()
			s.mu.Unlock()
		case <-ctx.Done():
			s.leave(w)
			return "", nil, ctx.Err()
		}
	}
}

// leave takes a waiter out who waits no more, and its turn back if it was given
// one meanwhile.
func (s *Shares) leave(w *waiter) {
	s.mu.Lock()
	at := slices.Index(s.waiting, w)
	if at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
	s.mu.Unlock()
	if at < 0 {
		s.release(w.guest)
	}
}

func (s *Shares) release(guest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.had[guest]--; s.had[guest] == 0 {
		delete(s.had, guest)
	}
	s.give()
}

// give hands out turns as long as somebody may have one. Needs mu.
func (s *Shares) give() {
	for {
		at, guest := -1, ""
		for i, w := range s.waiting {
			for _, g := range w.party.Guests() {
				if s.may(s.had[g]) && (at < 0 || s.had[g] < s.had[guest]) {
					at, guest = i, g
				}
			}
		}
		if at < 0 {
			return
		}
		w := s.waiting[at]
		s.waiting = slices.Delete(s.waiting, at, at+1)
		s.all++
		s.had[guest]++
		w.guest = guest
		close(w.given)
	}
}

// may tells whether a guest that has so many turns may have another. Needs mu.
func (s *Shares) may(had int) bool {
	l := s.limits
	return s.all < l.All && had < l.Each || s.all < l.Most && had < l.Sure
}

// Try takes a turn if there is one now.
func (s *Shares) Try(ctx context.Context) (guest string, release func(), ok bool) {
	w := &waiter{party: Of(ctx), given: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.give()
	at := slices.Index(s.waiting, w)
	if at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
	s.mu.Unlock()
	return w.guest, sync.OnceFunc(func() { s.release(w.guest) }), at < 0
}
