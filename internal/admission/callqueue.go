package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
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

// callQueue lets calls of tools in, as long as there are few.
type callQueue struct {
	limits  CallLimits
	running atomic.Int64
}

// calls are those of one sandbox. The zero value has made none.
type calls struct {
	mu      sync.Mutex // guards all below
	running int
	made    int64   // that were begun, ever
	tokens  float64 // calls that may begin now
	filled  time.Time
	cancels map[uint64]func() // of those that run
	last    uint64
	closed  bool                    // no more begin
	lost    map[uint64]audit.Record // of a restart: those without an end
	idle    chan struct{}           // closed once none runs; nil: nobody waits for that
}

// stop ends all calls, lets no other begin, and waits until their ends are on record, as
// long as ctx lasts.
func (c *calls) stop(ctx context.Context) {
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

// begin counts a call that is about to begin, unless the policy has no more of them for
// the sandbox. undo takes it back.
func (c *calls) begin(p *policy.Policy) (d policy.Decision, undo func()) {
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

// leave counts a call out.
func (c *calls) leave(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cancels, id)
	if c.running--; c.running == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// enter counts a call in until free is called, or says why it has to wait.
func (q *callQueue) enter(of *calls, cancel func(), now time.Time) (free func(), problem string) {
	of.mu.Lock()
	defer of.mu.Unlock()
	most := float64(4 * q.limits.PerSecond)
	if of.filled.IsZero() {
		of.tokens = most
	} else {
		of.tokens = min(most, of.tokens+now.Sub(of.filled).Seconds()*float64(q.limits.PerSecond))
	}
	of.filled = now
	switch {
	case of.closed:
		return nil, "the sandbox has ended"
	case of.tokens < 1:
		return nil, "this sandbox calls tools more often than it may; call again in a second"
	case of.running >= q.limits.Running:
		return nil, "so many calls of this sandbox are under way already that this one is not made; call again when one has ended"
	case q.running.Add(1) > int64(q.limits.All):
		q.running.Add(-1)
		return nil, "so many calls of tools are under way on this host that this one is not made; call again later"
	}
	of.tokens--
	of.running++
	of.last++
	if of.cancels == nil {
		of.cancels = map[uint64]func(){}
	}
	id := of.last
	of.cancels[id] = cancel
	return func() {
		q.running.Add(-1)
		of.leave(id)
	}, ""
}
