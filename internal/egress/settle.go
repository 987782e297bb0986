package egress

import (
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// company are the streams that are being answered.
type company struct {
	mu      sync.Mutex        // guards what follows
	last    uint64            // number of a stream
	open    map[uint64]string // the sandbox of each; "": it has not said yet
	changed chan struct{}     // closed when one ends or says; nil: nobody waits
}

func newCompany() *company { return &company{open: map[uint64]string{}} }

// enter counts a stream in, in the order in which they came.
func (c *company) enter() (number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.open[c.last] = ""
	return c.last
}

func (c *company) name(number uint64, sandbox string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[number] = sandbox
	c.tell()
}

func (c *company) leave(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, number)
	c.tell()
}

// tell wakes those who wait; mu is held.
func (c *company) tell() {
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

// alone waits until a stream is its sandbox's only one. false: ctx ended before.
func (c *company) alone(ctx context.Context, number uint64, sandbox string) bool {
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

// settle answers the daemon once all is on record that is counted, or under way, for a sandbox that has ended: its
// streams end by themselves, since the keeper has closed them. Whatever else waits to put more on record at a time no
// longer does.
func (s *stream) settle(ctx context.Context, number uint64) {
	var parting sync.WaitGroup
	defer parting.Wait()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	s.router.guests.hurry(s.sandbox)
	errand.In(&parting, func() { s.router.partWithGone(ctx, s.sandbox) })
	switch {
	case !s.router.company.alone(ctx, number, s.sandbox):
		s.reply(channel.Reply{Error: "some of its connections had not ended"})
	case !s.router.reports.told(ctx, s.sandbox) || s.router.guests.crowding(s.sandbox) > 0:
		s.reply(channel.Reply{Error: "what became of them could not be recorded"})
	default:
		s.reply(channel.Reply{OK: true})
	}
}

// partWithGone ends, until ctx does, connections of a sandbox that has ended of which nobody waits for more: the guest
// is gone, and the host has all that it said. The host need not end one for minutes, and a look comes only once in a
// while.
func (r *Router) partWithGone(ctx context.Context, sandbox string) {
	again := time.NewTicker(roomAgain)
	defer again.Stop()
	for {
		for _, p := range r.passages.of(sandbox) {
			if p.said.Load() && hungUp(p.guest) {
				p.stop(guestGone)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// told waits until no report of a sandbox waits. false: ctx ended before.
func (rs *reports) told(ctx context.Context, sandbox string) bool {
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
