package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// How long ended commands wait for the inventory that covers them. To take stock
// costs the sandbox as much as some small commands do, so that of those which
// follow each other closely one inventory tells.
const (
	stockPause = 300 * time.Millisecond
	stockShare = 5 // so many times what an inventory took, before the next
	stockMost  = 3 * time.Second
)

// stocktaking makes one inventory do for all commands that ended before it
// began. The zero value is ready.
type stocktaking struct {
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

// stocked returns when an inventory that began after the call is on record: why
// the sandbox is to be ended, and whether there was one at all.
func (m *Manager) stocked(ctx context.Context, s *Sandbox) (end string, known bool, err error) {
	t := &s.taking
	t.mu.Lock()
	r := t.next
	if r == nil {
		r = &round{hurry: make(chan struct{}), done: make(chan struct{})}
		t.next = r
		pause := min(max(stockPause, stockShare*t.took), stockMost)
		errand.In(&m.background, func() { m.takeStock(ctx, s, r, pause) })
	}
	t.mu.Unlock()
	<-r.done // the round ends with ctx, which is the manager's life for all of them
	return r.end, r.known, r.err
}

func (m *Manager) takeStock(ctx context.Context, s *Sandbox, r *round, pause time.Duration) {
	defer close(r.done)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
	case <-ctx.Done():
	}
	t := &s.taking
	t.mu.Lock()
	t.next = nil // who ends from now on needs another
	t.mu.Unlock()
	began := time.Now()
	r.known = s.waits.Steadily(ctx, func() { // a frozen guest could not answer
		r.err = errand.Try(func() (err error) {
			r.end, err = m.account(ctx, s)
			return err
		})
	}) == nil
	t.mu.Lock()
	t.took = time.Since(began)
	t.mu.Unlock()
}

// hurry has the inventory that ended commands wait for taken at once.
func (s *Sandbox) hurry() {
	s.taking.mu.Lock()
	defer s.taking.mu.Unlock()
	if r := s.taking.next; r != nil {
		r.once.Do(func() { close(r.hurry) })
	}
}
