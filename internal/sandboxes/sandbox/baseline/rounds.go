package baseline

import (
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// How long ended commands wait for the inventory that covers them. An inventory
// costs the sandbox as much as some small commands do, so that of those which
// follow each other closely one inventory tells.
const (
	roundPause = 300 * time.Millisecond
	roundShare = 5 // so many times what an inventory took, before the next
	roundMost  = 3 * time.Second
)

// rounds make one inventory do for all commands that ended before it
// began. The zero value is ready.
type rounds struct {
	mu   sync.Mutex // guards what follows
	next *round     // that has not begun; nil: nobody has asked for one
	took time.Duration
}

// round is one inventory.
type round struct {
	hurry chan struct{} // closed when somebody waits for it
	once  sync.Once
	done  chan struct{} // closed when the rest is set
	end   string        // why the policy ends the sandbox
	known bool          // false: the sandbox never ran steadily again
	err   error
}

// Covered returns when an inventory that began after the call is on record: why the
// sandbox is to be ended, and whether there was one at all. The round ends with ctx, which
// must be the same one for all calls; group waits for it. steadily runs something while
// the sandbox runs and is not frozen: a frozen guest could not answer.
func (t *Taker) Covered(ctx context.Context, group *sync.WaitGroup, steadily func(context.Context, func()) error) (end string, known bool, err error) {
	rs := &t.rounds
	rs.mu.Lock()
	r := rs.next
	if r == nil {
		r = &round{hurry: make(chan struct{}), done: make(chan struct{})}
		rs.next = r
		pause := min(max(roundPause, roundShare*rs.took), roundMost)
		safego.In(group, func() { t.takeRound(ctx, r, pause, steadily) })
	}
	rs.mu.Unlock()
	<-r.done
	return r.end, r.known, r.err
}

func (t *Taker) takeRound(ctx context.Context, r *round, pause time.Duration, steadily func(context.Context, func()) error) {
	defer close(r.done)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
	case <-ctx.Done():
	}
	rs := &t.rounds
	rs.mu.Lock()
	rs.next = nil // who ends from now on needs another
	rs.mu.Unlock()
	began := time.Now()
	r.known = steadily(ctx, func() {
		r.err = safego.Try(func() (err error) {
			r.end, err = t.account(ctx)
			return err
		})
	}) == nil
	rs.mu.Lock()
	rs.took = time.Since(began)
	rs.mu.Unlock()
}

// Hurry has the inventory that ended commands wait for taken at once.
func (t *Taker) Hurry() {
	t.rounds.mu.Lock()
	defer t.rounds.mu.Unlock()
	if r := t.rounds.next; r != nil {
		r.once.Do(func() { close(r.hurry) })
	}
}
