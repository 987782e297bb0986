package admission

import (
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
)

// CallLimits bound the calls of tools. A zero field is its default.
type CallLimits struct {
	Running   int // of one sandbox at a time; 8
	PerSecond int // that one sandbox may begin, with four times as many at once; 10
	All       int // of all sandboxes at a time; 64
}

func (l CallLimits) orDefaults() CallLimits {
	for field, value := range map[*int]int{&l.Running: 8, &l.PerSecond: 10, &l.All: 64} {
		if *field <= 0 {
			*field = value
		}
	}
	return l
}

// callQueue lets calls of tools in, as long as there are few. Each owner has a share of them: a
// token, or a sandbox of the host's.
type callQueue struct {
	limits  CallLimits
	running *fairqueue.Shares
}

// newCallQueue makes one. As many as one sandbox may have are sure for each owner.
func newCallQueue(l CallLimits) callQueue {
	l = l.orDefaults()
	shares := fairqueue.Fair(l.All, 0)
	shares.Sure, shares.Most = min(l.Running, shares.Each), 4*l.All
	return callQueue{limits: l, running: fairqueue.New(shares)}
}

// calls are those of one sandbox. The zero value has made none.
type calls struct {
	owner string // whose share they take; set once

	mu      sync.Mutex // guards all below
	running int        // and do not wait for a person
	made    int64      // that were begun, ever
	tokens  float64    // calls that may begin now
	filled  time.Time
	cancels map[uint64]func() // of those that run or wait
	last    uint64
	closed  bool                    // no more begin
	lost    map[uint64]audit.Record // of a restart: those without an end
	idle    chan struct{}           // closed once none runs; nil: nobody waits for that
}

// stopCalls ends all calls, lets no other begin, and waits until their ends are on record, as
// long as ctx lasts.
func (c *calls) stopCalls(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	for _, cancel := range c.cancels {
		cancel()
	}
	if c.running > 0 && c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// beginCall counts a call that is about to begin, unless the policy has no more of them for
// the sandbox. undo takes it back.
func (c *calls) beginCall(p *policy.Policy) (d policy.Decision, undo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d = policy.CallsLeft(p, c.made); !d.Allowed() {
		return d, func() {}
	}
	c.made++
	return d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made--
	}
}

// decideCallsLeft answers whether the policy has more calls for the sandbox.
func (c *calls) decideCallsLeft(p *policy.Policy) policy.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return policy.CallsLeft(p, c.made)
}

// seat is a call that was let in. One goroutine has it.
type seat struct {
	queue *callQueue
	of    *calls
	id    uint64
	done  func() // gives the place back
	rests bool   // it waits for a person, and takes nobody's place
}

// leaveQueue counts the call out.
func (s *seat) leaveQueue() {
	if !s.rests {
		s.restSeat()
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.cancels, s.id)
}

// restSeat gives the call's place to others until it goes on. It still ends with its sandbox.
func (s *seat) restSeat() {
	s.rests = true
	s.done()
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// resume takes a place again, or says why there is none.
func (s *seat) resume() (problem string) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.done, problem = s.queue.admitCall(s.of)
	s.rests = problem != ""
	return problem
}

// admitCall counts a call among those that are under way, or says why it can't be. Needs the
// sandbox's mu.
func (q *callQueue) admitCall(of *calls) (done func(), problem string) {
	switch {
	case of.closed:
		return nil, "the sandbox has ended"
	case of.running >= q.limits.Running:
		return nil, "so many calls of this sandbox are under way already that this one is not made; call again when one has ended"
	}
	_, done, ok := q.running.Try(fairqueue.For(context.Background(), of.owner))
	if !ok {
		return nil, "so many calls of tools are under way on this host, or for the same owner, that this one is not made; call again later"
	}
	of.running++
	return done, ""
}

// enterCall lets a call in, or says why it has to wait.
func (q *callQueue) enterCall(of *calls, cancel func(), now time.Time) (in *seat, problem string) {
	of.mu.Lock()
	defer of.mu.Unlock()
	most := float64(4 * q.limits.PerSecond)
	if of.filled.IsZero() {
		of.tokens = most
	} else {
		of.tokens = min(most, of.tokens+now.Sub(of.filled).Seconds()*float64(q.limits.PerSecond))
	}
	of.filled = now
	if of.tokens < 1 && !of.closed {
		return nil, "this sandbox calls tools more often than it may; call again in a second"
	}
	done, problem := q.admitCall(of)
	if problem != "" {
		return nil, problem
	}
	of.tokens--
	of.last++
	if of.cancels == nil {
		of.cancels = map[uint64]func(){}
	}
	of.cancels[of.last] = cancel
	return &seat{queue: q, of: of, id: of.last, done: done}, ""
}
