package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
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
	defer s.clients.Touch()
	return s.waits.Released(ctx, heldAs(h))
}

func heldAs(h admission.Hold) waiting.Hold {
	return waiting.Hold{Approval: h.Approval, Tree: h.Tree, Package: h.Package, Reason: h.Reason}
}

// waitsOf is how the list of a sandbox's holds reaches it.
func (m *Manager) waitsOf(s *Sandbox) waiting.Config {
	id := s.info.ID
	cfg := waiting.Config{
		Sandbox: id, Queue: m.cfg.Queue, Shelf: m.cfg.Shelf, After: m.cfg.FreezeAfter, Log: m.cfg.Log,
		Clocks:   func(ctx context.Context, stopped bool) error { return m.stopClocks(ctx, id, stopped) },
		Woken:    func(ctx context.Context) error { return m.wake(ctx, id) },
		Anew:     func(ctx context.Context) error { return m.beginAnew(ctx, s) },
		Remember: func(ctx context.Context, saved *waiting.Saved) error { return m.remember(ctx, s.info, saved) },
		Record:   func(ctx context.Context, c waiting.Change) { m.recordFreeze(ctx, id, c) },
		Lost:     func(reason string) { m.lose(s, reason) },
		Moved:    func(to waiting.State) { m.moved(s, to) },
		Still:    func(still bool) { m.stoodStill(s, still) },
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

// remember has the keeper hand back to the next daemon what is known of a sandbox;
// all of it but the labels, which may be more than the keeper takes: the journal has
// those.
func (m *Manager) remember(ctx context.Context, info Info, saved *waiting.Saved) error {
	info.Labels = nil
	meta, err := json.Marshal(kept{Info: info, Waiting: saved})
	if err != nil {
		return err
	}
	return m.cfg.Keeper.SetMeta(ctx, info.ID, meta)
}

// stoodStill is told when the sandbox's time counts no more, or does again. The
// journal gets to know of it in the background: the caller must not wait.
func (m *Manager) stoodStill(s *Sandbox, still bool) {
	m.ends.Still(s.info.ID, still)
	if m.ctx.Err() == nil {
		m.crew.do(s.info.Owner.Token, func() { m.rewrite(m.ctx, s) })
	}
}

func (m *Manager) recordFreeze(ctx context.Context, id string, c waiting.Change) {
	change := admission.FreezeChange{Outcome: audit.Thawed, Approvals: c.Approvals, Bytes: c.Bytes, Took: c.Took, Frozen: c.Frozen, Files: c.Files, Reason: c.Problem}
	switch {
	case c.Problem != "":
		change.Outcome = audit.Failed
	case c.To == waiting.Frozen:
		change.Outcome = audit.Frozen
	case c.To == waiting.Paused:
		change.Outcome = audit.Paused
	case c.Pause:
		change.Outcome = audit.Resumed
	}
	if err := m.cfg.Door.SandboxFroze(ctx, id, change); err != nil {
		m.cfg.Log.Error("a freeze or thaw is not on record", "sandbox", id, "err", err)
	}
}

// lose gives up a sandbox that can't be thawed: it has failed, and is taken away.
func (m *Manager) lose(s *Sandbox, reason string) {
	errand.In(&m.background, func() { m.fail(m.ctx, s, engine.Exit{Code: lostCode, Reason: reason}) })
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
