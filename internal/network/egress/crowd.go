package egress

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// crowd is what a sandbox was refused unheard; guests.mu guards its fields.
type crowd struct {
	refused int           // streams of which no record tells yet
	telling bool          // somebody puts them on record
	hurry   chan struct{} // closed when the sandbox has ended
	hurried bool
}

// countUnheard counts streams that were refused unheard; first: whoever asks puts them on record, with those that come
// meanwhile, until uncrowd gives none.
func (gs *sandboxRates) countUnheard(id string, n int) (first bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	c := &gs.getGuest(id).crowd
	c.refused += n
	first, c.telling = !c.telling, true
	return first
}

// uncrowd gives those of which no record tells, to put them on record. 0: there are none, and whoever did that is done.
func (gs *sandboxRates) uncrowd(id string) int {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	c := &gs.getGuest(id).crowd
	n := c.refused
	c.refused, c.telling = 0, n > 0
	return n
}

// crowdAgain counts those again that could not be put on record. last: nobody tries again.
func (gs *sandboxRates) crowdAgain(id string, n int, last bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	c := &gs.getGuest(id).crowd
	c.refused += n
	c.telling = c.telling && !last
}

// crowding is how many are on no record.
func (gs *sandboxRates) crowding(id string) int {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.getGuest(id).crowd.refused
}

// hurried is closed when a sandbox has ended, by hurry.
func (gs *sandboxRates) hurried(id string) <-chan struct{} {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.getGuest(id).crowd.hurry
}

func (gs *sandboxRates) hurryGuest(id string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if c := &gs.getGuest(id).crowd; !c.hurried {
		c.hurried = true
		close(c.hurry)
	}
}

// crowded has a stream put on record that was refused unheard: as many as a sandbox may have were under way. There
// may be very many, so the first has its record at once, and after that one record counts those of a while. The
// stream is closed.
func (s *guestStream) crowded(ctx context.Context) {
	_ = s.conn.Close() // who waits for the answer has it
	if !s.router.guests.countUnheard(s.sandbox, 1) {
		return
	}
	for n := s.router.guests.uncrowd(s.sandbox); n > 0; n = s.router.guests.uncrowd(s.sandbox) {
		err := s.recordCrowd(ctx, n)
		goesOn := s.linger(ctx)
		if err == nil {
			continue
		}
		s.router.guests.crowdAgain(s.sandbox, n, !goesOn)
		if !goesOn {
			return
		}
	}
}

// linger waits until another record may follow the last. false: it may at once, since the sandbox has ended, or the
// gateway ends.
func (s *guestStream) linger(ctx context.Context) bool {
	while := time.NewTimer(s.router.limits.Look)
	defer while.Stop()
	select {
	case <-while.C:
		return true
	case <-s.router.guests.hurried(s.sandbox):
	case <-ctx.Done():
	}
	return false
}

// keeperRefused has streams put on record that the keeper has refused, which counts those of a second itself. The
// keeper is told that they were heard of, and whether they are on record: what is not it tells again.
func (s *guestStream) keeperRefused(ctx context.Context, n int) {
	if !s.replyOpen(channel.Reply{}) {
		return // it tells again
	}
	if err := s.recordCrowd(ctx, n); err != nil {
		s.replyOpen(channel.Reply{Error: "the log does not take it"})
		return
	}
	s.replyOpen(channel.Reply{OK: true})
}

// recordCrowd records the crowd. It returns nil also if the door knows the sandbox no more, or takes no more records of it.
func (s *guestStream) recordCrowd(ctx context.Context, n int) error {
	if err := s.recordOrFail(ctx, door.Crowded(s.sandbox, n)); !isSettled(err) {
		return err
	}
	return nil
}
