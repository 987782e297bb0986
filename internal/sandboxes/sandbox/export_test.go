package sandbox

import (
	"context"
	"runtime"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// Lives is that of inventory.Taker, for tests outside of the package.
func (m *Manager) Lives(ctx context.Context, s *Sandbox) bool { return s.inventory.Lives(ctx) }

// AwaitEnds returns when all clocks that are announced and over have been told of.
func (m *Manager) AwaitEnds() {
	const last = "the last that is over"
	m.tracker.ends.Start(last, expiry.Terms{TTL: 1}, 0)
	m.tracker.ends.Announce(last)
	defer m.tracker.ends.Drop(last)
	for m.tracker.ends.Set(last, expiry.Terms{TTL: 1}) == nil { // it takes no new terms once it is over
		runtime.Gosched()
	}
}

// LeaseSnapshot is that of copies.Library, for tests outside of the package.
func (m *Manager) LeaseSnapshot(ctx context.Context, ref string) (*snapshots.Lease, error) {
	return m.copies.Lease(ctx, "", ref)
}
