package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
)

var _ admission.Holder = (*Manager)(nil)

// Held implements admission.Holder: a request of the sandbox's client waits for a
// person. It returns at once.
func (m *Manager) Held(sandbox string, h admission.Hold, freeze bool) {
	s, err := m.Get(sandbox)
	if err != nil {
		return // it is gone, and its client with it
	}
	hold := heldAs(h)
	hold.Freeze = freeze
	s.waits.Held(hold)
}

// Released implements admission.Holder: it returns when the sandbox runs.
func (m *Manager) Released(ctx context.Context, sandbox string, h admission.Hold) error {
	s, err := m.Get(sandbox)
	if err != nil {
		return err
	}
	defer s.used()
	return s.waits.Released(ctx, heldAs(h))
}

func heldAs(h admission.Hold) waiting.Hold {
	return waiting.Hold{Approval: h.Approval, Package: h.Package, Reason: h.Reason}
}

// Waits is what the sandbox waits for now, and a channel that tells when that
// changes.
func (s *Sandbox) Waits() waiting.View { return s.waits.View() }

// Gone is closed when the sandbox has been taken away.
func (s *Sandbox) Gone() <-chan struct{} { return s.gone }

// used: the sandbox is not abandoned.
func (s *Sandbox) used() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsed = time.Now()
}

// waitsOf is how the list of a sandbox's holds reaches it.
func (m *Manager) waitsOf(s *Sandbox) waiting.Config {
	id := s.info.ID
	cfg := waiting.Config{
		Sandbox: id, Queue: m.cfg.Queue, Shelf: m.cfg.Shelf, After: m.cfg.FreezeAfter, Log: m.cfg.Log,
		Clocks:   func(ctx context.Context, stopped bool) error { return m.stopClocks(ctx, id, stopped) },
		Woken:    func(ctx context.Context) error { return m.wake(ctx, id) },
		Remember: func(ctx context.Context, saved *waiting.Saved) error { return m.remember(ctx, s.info, saved) },
		Record:   func(ctx context.Context, c waiting.Change) { m.recordFreeze(ctx, id, c) },
		Lost:     func(reason string) { m.lose(s, reason) },
		Memory: func(ctx context.Context) int64 {
			stats, err := s.instance.Stats(ctx)
			if err != nil {
				return 0 // the free-space reserve and the size of what lies there still count
			}
			return stats.MemoryBytes
		},
	}
	if body, ok := s.instance.(engine.Freezer); ok {
		cfg.Body = body
	}
	return cfg
}

// kept is the keeper's meta of a sandbox.
type kept struct {
	Info
	// Waiting is what the sandbox is frozen for, written before the freeze begins.
	Waiting *waiting.Saved `json:"waiting,omitempty"`
}

// remember has the keeper hand back to the next daemon what is known of a sandbox.
func (m *Manager) remember(ctx context.Context, info Info, saved *waiting.Saved) error {
	meta, err := json.Marshal(kept{Info: info, Waiting: saved})
	if err != nil {
		return err
	}
	return m.cfg.Keeper.SetMeta(ctx, info.ID, meta)
}

func (m *Manager) recordFreeze(ctx context.Context, id string, c waiting.Change) {
	change := admission.FreezeChange{Outcome: audit.Thawed, Approvals: c.Approvals, Bytes: c.Bytes, Took: c.Took, Frozen: c.Frozen, Reason: c.Problem}
	switch {
	case c.Problem != "":
		change.Outcome = audit.Failed
	case c.To == waiting.Frozen:
		change.Outcome = audit.Frozen
	}
	if err := m.cfg.Door.SandboxFroze(ctx, id, change); err != nil {
		m.cfg.Log.Error("a freeze or thaw is not on record", "sandbox", id, "err", err)
	}
}

// lose gives up a sandbox that can't be thawed: it has failed, and is taken away.
func (m *Manager) lose(s *Sandbox, reason string) {
	s.mu.Lock()
	ends := s.ending()
	if !ends {
		s.state = Failed
		s.exit = &engine.Exit{Code: lostCode, Reason: reason}
	}
	s.mu.Unlock()
	if ends {
		return
	}
	m.background.Go(func() {
		m.cfg.Log.Error("a sandbox is lost", "sandbox", s.info.ID, "reason", reason)
		if err := m.remove(context.WithoutCancel(m.ctx), s, reason); err != nil {
			m.cfg.Log.Error("a lost sandbox can't be taken away", "sandbox", s.info.ID, "err", err)
		}
	})
}

// lostCode is the exit code of what was lost: as if killed.
const lostCode = 137

// stopClocks tells the guest that time does not count against its commands while
// somebody decides, or that it does again.
func (m *Manager) stopClocks(ctx context.Context, id string, stopped bool) error {
	_, err := m.cfg.Keeper.Call(ctx, id, channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{Stopped: stopped}})
	return err
}

// wake tells a guest that was frozen what time it is, and gives it randomness that
// no copy of its image has.
func (m *Manager) wake(ctx context.Context, id string) error {
	_, err := m.cfg.Keeper.Call(ctx, id, channel.Call{
		Kind: channel.CallResume, Resume: &channel.Resume{Now: time.Now().UnixNano(), Seed: seed()},
	})
	return err
}
