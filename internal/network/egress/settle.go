package egress

import (
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// company are the streams that are being answered.
type company struct {
	mu      sync.Mutex        // guards what follows
	last    uint64            // number of a stream
	open    map[uint64]string // the sandbox of each; "": it has not said yet
	changed chan struct{}     // closed when one ends or says; nil: nobody waits
}

func newCompany() *company { return &company{open: map[uint64]string{}} }

// enterStream counts a stream in, in the order in which they came.
func (c *company) enterStream() (number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.open[c.last] = ""
	return c.last
}

func (c *company) nameStream(number uint64, sandbox string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[number] = sandbox
	c.wakeWaiters()
}

func (c *company) leaveStream(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, number)
	c.wakeWaiters()
}

// wakeWaiters wakes those who wait; mu is held.
func (c *company) wakeWaiters() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// accompanied tells whether a stream of the sandbox other than this one goes on, or one that came before and may be of it.
// mu is held.
func (c *company) accompanied(number uint64, sandbox string) bool {
	for other, of := range c.open {
		if other != number && of == sandbox || of == "" && other < number {
			return true
		}
	}
	return false
}

// awaitAlone waits until a stream is its sandbox's only one. false: ctx ended before.
func (c *company) awaitAlone(ctx context.Context, number uint64, sandbox string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.accompanied(number, sandbox) {
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// settleTime bounds how long it may take until all of a sandbox that has ended is on record.
const settleTime = 4 * time.Second

// settleSandbox answers the daemon once all is on record that is counted, or under way, for a sandbox that has ended: its
// streams end by themselves, since the keeper has closed them. Whatever else waits to put more on record at a time no
// longer does.
func (s *guestStream) settleSandbox(ctx context.Context, number uint64) {
	var parting sync.WaitGroup
	defer parting.Wait()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	s.router.guests.hurryGuest(s.sandbox)
	safego.In(&parting, func() { s.router.partWithGone(ctx, s.sandbox) })
	switch {
	case !s.router.company.awaitAlone(ctx, number, s.sandbox):
		s.replyOpen(channel.Reply{Error: "some of its connections had not ended"})
	case !s.router.reports.awaitTold(ctx, s.sandbox) || s.router.guests.crowding(s.sandbox) > 0:
		s.replyOpen(channel.Reply{Error: "what became of them could not be recorded"})
	default:
		s.replyOpen(channel.Reply{OK: true})
	}
}

// partWithGone ends, until ctx does, connections of a sandbox that has ended of which nobody waits for more: the guest
// is gone, and the host has all that it said. The host need not end one for minutes, and a look comes only once in a
// while.
func (r *Router) partWithGone(ctx context.Context, sandbox string) {
	again := time.NewTicker(roomAgain)
	defer again.Stop()
	for {
		for _, p := range r.passages.passagesOf(sandbox) {
			if p.said.Load() && hungUp(p.guest) {
				p.stopConnection(guestGone)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// awaitTold waits until no report of a sandbox waits. false: ctx ended before.
func (rs *reports) awaitTold(ctx context.Context, sandbox string) bool {
	again := time.NewTicker(roomAgain)
	defer again.Stop()
	for rs.waiting(sandbox) {
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (rs *reports) waiting(sandbox string) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.pending[sandbox] != nil
}
