package sandbox

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// SetLifetime replaces when the sandbox ends, from now on. A lease that is not asked for stays; see
// NoLease. A sandbox whose time is
// over already, or that is being destroyed, is a fault.ErrConflict.
func (m *Manager) SetLifetime(ctx context.Context, id string, l Lifetime) error {
	s, err := m.Get(id)
	if err != nil {
		return err
	}
	if err := checkLifetime(l); err != nil {
		return err
	}
	if l.Then.Pauses() {
		if err := m.planner.engines.canPause(ctx, s.info.Engine); err != nil {
			return err
		}
	}
	if err := m.tracker.extend(ctx, s, l); err != nil {
		return err
	}
	faultpoint.Hit(faultpoint.ExtendJournaled)
	if !s.toRecord(time.Now()) {
		return nil
	}
	if err := m.cfg.Door.SandboxExtended(ctx, id, l.TTL, l.Idle, string(l.Then)); err != nil {
		m.cfg.Log.Error("a change of a sandbox's end is not on record", "sandbox", id, "run", s.info.Run, "err", err)
	}
	faultpoint.Hit(faultpoint.ExtendRecorded)
	return nil
}

// keptOr is the lease that a sandbox has whose lifetime was said anew, or the one of a copy: what was
// asked for, else the one that was. A request that says when a sandbox ends does not say that it
// may outlive its client.
func keptOr(asked, was time.Duration) time.Duration {
	switch asked {
	case 0:
		return was
	case NoLease:
		return 0
	default:
		return asked
	}
}

// Touch tells that a client uses the sandbox: it is not idle.
func (m *Manager) Touch(id string) {
	if s, err := m.Get(id); err == nil {
		s.clients.Touch()
	}
}

// ReapAbandoned destroys sandboxes without Linger, lifetime and hold whose client went
// away and whose commands have ended.
func (m *Manager) ReapAbandoned(ctx context.Context) {
	for _, s := range m.List() {
		if !s.abandoned() || m.runsCommand(ctx, s.info.ID) {
			continue
		}
		m.cfg.Log.Info("a sandbox whose client went away is destroyed", "sandbox", s.info.ID)
		m.background.doInBackground(func() {
			if err := m.Destroy(m.background.ctx, s.info.ID); err != nil {
				m.cfg.Log.Error("an abandoned sandbox can't be destroyed", "sandbox", s.info.ID, "err", err)
			}
		})
	}
}

// abandoned tells whether nothing is left that the sandbox would be kept for but its
// commands.
func (s *Sandbox) abandoned() bool {
	waits := s.waits.View()
	s.mu.Lock()
	quiet := s.state == Running && !s.info.Linger && !s.lifetime.HasEnd() && len(waits.Holds) == 0 && waits.State == suspend.Running
	s.mu.Unlock()
	return quiet && s.clients.Gone()
}

// runsCommand tells whether a command of a sandbox may run.
func (m *Manager) runsCommand(ctx context.Context, id string) bool {
	k, err := m.cfg.Keeper.Get(ctx, id)
	if err != nil {
		return true
	}
	for _, c := range k.Commands {
		if c.Exit == nil {
			return true
		}
	}
	return false
}
