// Package expiry says when the time of sandboxes is over. It knows nothing else of
// them.
//
// All of it is monotonic time: setting the wall clock changes nothing. There is
// one goroutine, whatever the number of clocks.
package expiry

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Terms are how long a sandbox lives (its TTL) and how long it may be idle; 0: without end.
type Terms struct {
	TTL  time.Duration
	Idle time.Duration
}

// Cause is why a clock is over.
type Cause string

// The causes.
const (
	CauseTTL  Cause = "ttl"
	CauseIdle Cause = "idle"
)

// Schedule keeps the clocks. Safe for concurrent use.
type Schedule struct {
	expired func(id string, why Cause)
	wake    chan struct{} // has one element when the goroutine is to look again

	mu     sync.Mutex // guards what follows; nothing is called with it held
	clocks map[string]*clock
	queue  queue // of those that run towards an end
}

// New makes a schedule. expired is called by Run for each clock that is over, once
// until it is set anew; it must not block.
func New(expired func(id string, why Cause)) *Schedule {
	return &Schedule{expired: expired, wake: make(chan struct{}, 1), clocks: map[string]*clock{}}
}

// Start begins a clock, whose end nobody is told of before it is announced; left is
// what is left of the TTL. One that is there is replaced.
func (s *Schedule) Start(id string, terms Terms, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropClock(id)
	c := &clock{id: id, terms: terms, ttl: left, idle: terms.Idle, since: time.Now(), at: -1}
	s.clocks[id] = c
}

// Activate has a clock be one that has not stood still for so long already.
func (s *Schedule) Activate(id string, active time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clocks[id]; c != nil {
		c.countTime()
		c.active = active
	}
}

// Announce has Run tell of a clock's end, which may have been long ago.
func (s *Schedule) Announce(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clocks[id]; c != nil && !c.announced {
		c.countTime()
		c.announced = true
		s.placeClock(c)
	}
}

// Set gives a clock new terms, from now on. One that is over is a
// fault.ErrConflict: of an extension and an end that come together one wins.
func (s *Schedule) Set(id string, terms Terms) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[id]
	if c == nil {
		return fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
	}
	if c.over {
		return fault.New(fault.ErrConflict, "the time of the sandbox %s is over; it is being ended", id)
	}
	c.countTime()
	c.terms, c.ttl, c.idle = terms, terms.TTL, terms.Idle
	s.placeClock(c)
	return nil
}

// Renew lets a clock that is over begin anew with the terms that it has: another
// end than the sandbox's was found for it.
func (s *Schedule) Renew(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clocks[id]; c != nil && c.over {
		c.countTime()
		c.over, c.ttl, c.idle = false, c.terms.TTL, c.terms.Idle
		s.placeClock(c)
	}
}

// Busy takes back that a clock is over for being idle: the sandbox is in use. Its
// TTL counts on.
func (s *Schedule) Busy(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clocks[id]; c != nil && c.over {
		c.countTime()
		c.over, c.idle = false, c.terms.Idle
		s.placeClock(c)
	}
}

// Touch begins the idle time anew. A clock that is over for being idle stays so.
func (s *Schedule) Touch(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[id]
	if c == nil || c.terms.Idle == 0 || c.over {
		return
	}
	c.countTime()
	c.idle = c.terms.Idle
	s.placeClock(c)
}

// Still stops a clock, or lets it go on.
func (s *Schedule) Still(id string, still bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[id]
	if c == nil || c.still == still {
		return
	}
	c.countTime()
	c.still = still
	s.placeClock(c)
}

// Drop forgets a clock.
func (s *Schedule) Drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropClock(id)
}

// View is how a clock stands.
type View struct {
	Terms Terms
	Left  time.Duration // of the TTL; not above 0 when it is over
	Still bool
	// Active is how long it has not stood still, from its beginning (Activate) on.
	Active time.Duration
	// Ends is when the clock is over if nothing touches it, and as if it went on
	// now if it stands still; zero: never.
	Ends time.Time
}

// View returns how a clock stands; false if there is none.
func (s *Schedule) View(id string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clocks[id]
	if c == nil {
		return View{}, false
	}
	c.countTime()
	v := View{Terms: c.terms, Left: c.ttl, Still: c.still, Active: c.active}
	if left, _, some := c.nextEnd(); some {
		v.Ends = c.since.Add(left)
	}
	return v, true
}

// Run tells of the clocks that are over until ctx ends. There is one Run.
func (s *Schedule) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		over, next := s.takeDue(time.Now())
		for _, o := range over {
			s.expired(o.id, o.why)
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// farAway is how long Run sleeps when there is nothing to wait for.
const farAway = 24 * time.Hour

type overdue struct {
	id  string
	why Cause
}

// takeDue takes those that are over out of the queue, and tells when the next is.
func (s *Schedule) takeDue(now time.Time) (over []overdue, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 {
		c := s.queue[0]
		if wait := c.due.Sub(now); wait > 0 {
			return over, wait
		}
		heap.Pop(&s.queue)
		c.countTime()
		_, why, _ := c.nextEnd()
		c.over = true
		over = append(over, overdue{c.id, why})
	}
	return over, farAway
}

// dropClock needs mu.
func (s *Schedule) dropClock(id string) {
	if c := s.clocks[id]; c != nil {
		if c.at >= 0 {
			heap.Remove(&s.queue, c.at)
		}
		delete(s.clocks, id)
	}
}

// placeClock puts a clock where it belongs in the queue, after a count. Needs mu.
func (s *Schedule) placeClock(c *clock) {
	left, _, some := c.nextEnd()
	runs := some && c.announced && !c.still && !c.over
	c.due = c.since.Add(left)
	switch {
	case runs && c.at < 0:
		heap.Push(&s.queue, c)
	case runs:
		heap.Fix(&s.queue, c.at)
	case c.at >= 0:
		heap.Remove(&s.queue, c.at)
	}
	if runs && c.at == 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// clock counts both times of a sandbox down; the schedule's mu guards it. It stands still while
// the sandbox does not run or waits for a person. A clock that came to its end stays over until
// it is set anew. It is announced once whoever is told of its end knows the sandbox.
type clock struct {
	id        string
	terms     Terms
	ttl, idle time.Duration // what was left of both at since
	active    time.Duration // by since
	since     time.Time
	announced bool
	still     bool
	over      bool
	due       time.Time
	at        int // in the queue; -1: it is not there
}

// countTime brings what is left up to now.
func (c *clock) countTime() {
	now := time.Now()
	if !c.still {
		c.ttl -= now.Sub(c.since)
		c.idle -= now.Sub(c.since)
		c.active += now.Sub(c.since)
	}
	c.since = now
}

// nextEnd is the end that comes first, counted from since.
func (c *clock) nextEnd() (left time.Duration, why Cause, some bool) {
	if c.terms.TTL > 0 {
		left, why, some = c.ttl, CauseTTL, true
	}
	if c.terms.Idle > 0 && (!some || c.idle < left) {
		left, why, some = c.idle, CauseIdle, true
	}
	return left, why, some
}

// queue is a heap, the next end first.
type queue []*clock

func (q queue) Len() int           { return len(q) }
func (q queue) Less(a, b int) bool { return q[a].due.Before(q[b].due) }

func (q queue) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].at, q[b].at = a, b
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	c, _ := x.(*clock) // nothing else is put in
	c.at = len(*q)
	*q = append(*q, c)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	c.at = -1
	return c
}
