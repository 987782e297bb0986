package fairqueue

import (
	"cmp"
	"context"
	"errors"
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
	// Line is how many may wait for one guest's turns, of which a quarter is out of any one member's reach; 0: as
	// many as do.
	Line int
}

// LineOfOne is how many may wait for one member of a guest.
func (l Limits) LineOfOne() int { return l.Line - l.Line/4 }

// Fair makes limits of so many turns, of which a quarter (at least one, if there are two)
// is out of any one guest's reach. line bounds how many wait for one guest; 0: nothing does.
func Fair(all, line int) Limits {
	all = max(all, 1)
	return Limits{All: all, Each: max(all-(all+3)/4, 1), Line: line}
}

// ErrCrowded tells that as many wait for each guest of the party, or for the member, as may.
var ErrCrowded = errors.New("the line for a turn is full")

// Shares give turns: next is the guest that has the fewest, among these the one that was
// given one the longest ago (or came, if it had none and waited for none since), then who has waited for longest; and of a guest's
// members by the same rule. So the many that one guest, or one member, waits for do not stand before another's few. Safe
// for concurrent use.
type Shares struct {
	limits Limits

	mu    sync.Mutex // guards what follows
	all   int
	had   map[string]int    // by guest
	given uint64            // twice the number of turns there have been
	last  map[string]uint64 // which of them was a guest's last; forgotten with the guest
	ones  map[one]*turn     // of members; forgotten with each
	came  uint64            // how many have waited
	// The waiters, in the order in which they came: for one guest alone, and for parties. Only the
	// first of each member's is looked at, so that a long line takes no time of the others'.
	alone   map[string]map[string][]*waiter // by guest and member
	parties []*waiter
}

// turn is a member's right to go on, taken out of shares and counted for one guest of the party.
type turn struct {
	had  int
	last uint64
}

// waiter is somebody who waits for a turn. guest is set when it is given.
type waiter struct {
	party  *Party // nil: it waits for guest alone
	guest  string
	member string
	came   uint64 // how many had come before
	since  uint64 // stands for the last turn of who has had none, or is forgotten
	given  chan struct{}
}

func newWaiter(ctx context.Context) *waiter {
	w := &waiter{given: make(chan struct{})}
	switch who := ctx.Value(partyKey{}).(type) {
	case *Party:
		w.party = who
	case string:
		w.guest = who
	case one:
		w.guest, w.member = who.guest, who.member
	}
	return w
}

// guests are those whom it waits for.
func (w *waiter) guests() []string {
	if w.party == nil {
		return []string{w.guest}
	}
	return w.party.Guests()
}

// growth is closed when it waits for another guest, too; nil: it never does.
func (w *waiter) growth() <-chan struct{} {
	if w.party == nil {
		return nil
	}
	return w.party.growth()
}

// New makes shares.
func New(l Limits) *Shares {
	return &Shares{limits: l, had: map[string]int{}, last: map[string]uint64{}, ones: map[one]*turn{}, alone: map[string]map[string][]*waiter{}}
}

// Limits are those that the shares were made with.
func (s *Shares) Limits() Limits { return s.limits }

// Held is how many turns are taken.
func (s *Shares) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Waiting is how many wait for a turn.
func (s *Shares) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.parties)
	for _, lines := range s.alone {
		n += length(lines)
	}
	return n
}

// Take waits for a turn for the party that ctx is for, and tells for which guest
// of it the turn counts. The caller gives it back by release, once. The error is
// that of ctx, or ErrCrowded.
func (s *Shares) Take(ctx context.Context) (guest string, release func(), err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	w := newWaiter(ctx)
	grew := w.growth()
	if !s.joinLine(w) {
		return "", nil, ErrCrowded
	}
	for {
		select {
		case <-w.given:
			return w.guest, sync.OnceFunc(func() { s.releaseTurn(w) }), nil
		case <-grew:
			grew = w.growth()
			s.mu.Lock()
			s.giveTurns()
			s.mu.Unlock()
		case <-ctx.Done():
			s.leaveLine(w)
			return "", nil, ctx.Err()
		}
	}
}

// Try takes a turn if there is one now.
func (s *Shares) Try(ctx context.Context) (guest string, release func(), ok bool) {
	w := newWaiter(ctx)
	s.mu.Lock()
	s.addWaiter(w)
	s.giveTurns()
	left := s.dropWaiter(w)
	s.mu.Unlock()
	return w.guest, sync.OnceFunc(func() { s.releaseTurn(w) }), !left
}

// joinLine puts a waiter into line; false: it is full for each guest of its party.
func (s *Shares) joinLine(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := func(guest string) bool {
		ofOne := w.member != "" && len(s.alone[guest][w.member]) >= s.limits.LineOfOne()
		return s.limits.Line > 0 && (ofOne || s.countWaiting(guest) >= s.limits.Line)
	}
	if !slices.ContainsFunc(w.guests(), func(guest string) bool { return !full(guest) }) {
		return false
	}
	s.addWaiter(w)
	s.giveTurns()
	return true
}

// addWaiter puts a waiter at the end of the line. Needs mu.
func (s *Shares) addWaiter(w *waiter) {
	w.came = s.came
	s.came++
	w.since = s.given - min(s.given, 1)
	if w.party == nil {
		if s.alone[w.guest] == nil {
			s.alone[w.guest] = map[string][]*waiter{}
		}
		s.alone[w.guest][w.member] = append(s.alone[w.guest][w.member], w)
		return
	}
	s.parties = append(s.parties, w)
}

// dropWaiter takes a waiter out of line; false: it was in none. Needs mu.
func (s *Shares) dropWaiter(w *waiter) bool {
	line := s.parties
	if w.party == nil {
		line = s.alone[w.guest][w.member]
	}
	at := slices.Index(line, w)
	if at < 0 {
		return false
	}
	line = slices.Delete(line, at, at+1)
	switch {
	case w.party != nil:
		s.parties = line
	case len(line) > 0:
		s.alone[w.guest][w.member] = line
	case len(s.alone[w.guest]) > 1:
		delete(s.alone[w.guest], w.member)
	default:
		delete(s.alone, w.guest)
	}
	s.forgetOne(one{w.guest, w.member})
	s.forgetGuests(w.guests()...)
	return true
}

// countWaiting counts those that wait for a guest's turns. Needs mu.
func (s *Shares) countWaiting(guest string) int {
	n := length(s.alone[guest])
	for _, w := range s.parties {
		if slices.Contains(w.guests(), guest) {
			n++
		}
	}
	return n
}

// leaveLine takes a waiter out who waits no more, and its turn back if it was given
// one meanwhile.
func (s *Shares) leaveLine(w *waiter) {
	s.mu.Lock()
	left := s.dropWaiter(w)
	s.mu.Unlock()
	if !left {
		s.releaseTurn(w)
	}
}

func (s *Shares) releaseTurn(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guest, its := w.guest, one{w.guest, w.member}
	s.all--
	s.ones[its].had--
	s.forgetOne(its)
	if s.had[guest]--; s.had[guest] == 0 {
		delete(s.had, guest)
		s.forgetGuests(guest)
	}
	s.giveTurns()
}

// forgetOne drops what is kept of a member that has nothing and waits for nothing. Needs mu.
func (s *Shares) forgetOne(its one) {
	if has := s.ones[its]; has != nil && has.had == 0 && len(s.alone[its.guest][its.member]) == 0 {
		delete(s.ones, its)
	}
}

// forgetGuests drops what is kept of guests who have nothing and wait for nothing. Needs mu.
func (s *Shares) forgetGuests(guests ...string) {
	for _, guest := range guests {
		if s.had[guest] == 0 && s.countWaiting(guest) == 0 {
			delete(s.last, guest)
		}
	}
}

// giveTurns hands out turns as long as somebody may have one. Needs mu.
func (s *Shares) giveTurns() {
	for {
		w, guest := s.nextWaiter()
		if w == nil {
			return
		}
		s.all++
		s.given += 2
		s.had[guest]++
		s.last[guest] = s.given
		its := one{guest, w.member}
		if s.ones[its] == nil {
			s.ones[its] = &turn{}
		}
		s.ones[its].had++
		s.ones[its].last = s.given
		s.dropWaiter(w)
		w.guest = guest
		close(w.given)
	}
}

// nextWaiter is who is to have the next turn, and for which guest; nil: there is none. Needs mu.
func (s *Shares) nextWaiter() (first *waiter, guest string) {
	if s.all >= max(s.limits.All, s.limits.Most) {
		return nil, ""
	}
	look := func(w *waiter, g string) {
		if s.mayHave(s.had[g]) && (first == nil || s.before(w, g, first, guest)) {
			first, guest = w, g
		}
	}
	for g, lines := range s.alone {
		look(s.firstOf(g, lines), g)
	}
	for _, w := range s.parties {
		for _, g := range w.guests() {
			look(w, g)
		}
	}
	return first, guest
}

// firstOf is who is next of those who wait for one guest. Needs mu.
func (s *Shares) firstOf(guest string, lines map[string][]*waiter) (first *waiter) {
	var has turn
	for member, line := range lines {
		its := turn{last: line[0].since}
		if known := s.ones[one{guest, member}]; known != nil {
			its = *known
		}
		if first == nil || cmp.Or(cmp.Compare(its.had, has.had), cmp.Compare(its.last, has.last), cmp.Compare(line[0].came, first.came)) < 0 {
			first, has = line[0], its
		}
	}
	return first
}

// length is how many wait in the lines of one guest.
func length(lines map[string][]*waiter) (n int) {
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// before tells whether a turn is guest a's, for whom v waits, before it is guest b's, for whom w does. Needs mu.
func (s *Shares) before(v *waiter, a string, w *waiter, b string) bool {
	return cmp.Or(cmp.Compare(s.had[a], s.had[b]), cmp.Compare(s.lastOf(v, a), s.lastOf(w, b)), cmp.Compare(v.came, w.came)) < 0
}

// lastOf is when a guest for whom w waits had its last turn. One that is forgotten has waited since it came, and not for
// ever: it would go before those who are known because they wait, again and again. Needs mu.
func (s *Shares) lastOf(w *waiter, guest string) uint64 {
	if last, known := s.last[guest]; known {
		return last
	}
	return w.since
}

// mayHave tells whether a guest that has so many turns may have another. Needs mu.
func (s *Shares) mayHave(had int) bool {
	l := s.limits
	return s.all < l.All && had < l.Each || s.all < l.Most && had < l.Sure
}
