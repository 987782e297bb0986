package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
)

// clientGone is why a sandbox ends whose lease is over.
const clientGone = "its client is gone"

// betweenCommands is how long a lease is at least while no command runs: a client is attached
// to none then, and may be asking for the summary of its run.
const betweenCommands = 5 * time.Minute

// EndLeases ends sandboxes that no client has been attached to for as long as their leases
// are. One that waits for a person, or is on disk, is somebody's still: it has no lease from
// then on, as if its client had left it. It returns at once.
func (m *Manager) EndLeases(ctx context.Context) {
	for _, s := range m.List() {
		lease := s.Lifetime().Lease
		absent := s.clients.Absent()
		if lease == 0 || s.over() || absent < lease || absent < betweenCommands && !m.runsCommand(ctx, s.info.ID) {
			continue
		}
		if waits := s.waits.View(); len(waits.Holds) > 0 || waits.State != waiting.Running {
			m.cfg.Log.Info("a sandbox that waits is kept though its client is gone", "sandbox", s.info.ID, "run", s.info.Run)
			m.tracker.dropLease(ctx, s)
			continue
		}
		m.cfg.Log.Info("a sandbox is ended, because its client is gone", "sandbox", s.info.ID, "run", s.info.Run, "lease", lease)
		m.background.do(func() {
			if err := m.remover.end(m.background.ctx, s, clientGone); err != nil && !errors.Is(err, context.Canceled) {
				m.cfg.Log.Error("a sandbox whose client is gone can't be destroyed", "sandbox", s.info.ID, "err", err)
			}
		})
	}
}

// dropLease has a sandbox go on without a client; the journal knows of it.
func (t *tracker) dropLease(ctx context.Context, s *Sandbox) {
	s.mu.Lock()
	s.lifetime.Lease = 0
	s.mu.Unlock()
	t.rewrite(ctx, s)
}
