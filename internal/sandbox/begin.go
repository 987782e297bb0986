package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/quota"
)

// birth is a sandbox that is being made: its owner's share is taken, the sweeps
// leave its id alone, and the journal knows of it.
type birth struct {
	manager *Manager
	entry   Entry
	leave   func()
}

// begin takes what a sandbox needs before anything of it is made. Whoever has a
// birth ends it with live or die.
func (m *Manager) begin(ctx context.Context, p *plan, req Request, digest string) (*birth, error) {
	if req.Lifetime.Then.Pauses() {
		if err := m.canPause(ctx, p.info.Engine); err != nil {
			return nil, err
		}
	}
	own := p.info.ID
	if err := m.quotas.Take(own, shareOf(p.info), req.Owner.Quota); err != nil {
		return nil, err
	}
	m.claim(ctx, p) // the plan may have another id now
	m.quotas.Rename(own, p.info.ID)
	b := &birth{manager: m, leave: m.occupy(p.info.ID), entry: Entry{Info: p.info, State: Creating, Key: req.IdempotencyKey, Request: digest}}
	m.disown(p.info.ID)
	if err := m.journal.Enter(ctx, b.entry, "", ""); err != nil {
		m.unclaim(ctx, p)
		m.quotas.Drop(p.info.ID)
		b.leave()
		return nil, fault.Wrap(fault.ErrUnavailable, err, "no sandbox can be made, because the journal of sandboxes can't be written")
	}
	faultpoint.Hit(faultpoint.CreateJournaled)
	return b, nil
}

// live ends a birth with a sandbox that runs.
func (b *birth) live(ctx context.Context, s *Sandbox) {
	m := b.manager
	defer b.leave()
	s.key, s.request, s.first = b.entry.Key, b.entry.Request, m.cfg.Door.FirstRecord(s.info.ID)
	m.ends.Start(s.info.ID, terms(s.lifetime), s.lifetime.TTL)
	s.turn.Lock()
	defer s.turn.Unlock()
	m.add(s) // before anybody hears of it
	m.ends.Announce(s.info.ID)
	m.correct(ctx, s, Running, "")
	faultpoint.Hit(faultpoint.CreateRunning)
}

// die ends a birth that came to nothing. What can't be taken away, or written, is
// tried again by the next reconcile.
func (b *birth) die(ctx context.Context, cause error) {
	m, id := b.manager, b.entry.Info.ID
	ctx = context.WithoutCancel(ctx)
	defer b.leave()
	m.quotas.Drop(id)
	m.forgetFiles(id)
	e := b.entry
	e.State = Failed
	if err := m.journal.Enter(ctx, e, Creating, cause.Error()); err != nil {
		m.cfg.Log.Error("the end of a create is not in the journal; it is made up for later", "sandbox", id, "run", e.Info.Run, "err", err)
		return
	}
	if eng := m.cfg.Engines[e.Info.Engine]; eng != nil {
		if err := eng.Sweep(ctx, id); err != nil {
			m.cfg.Log.Error("what a create left can't be swept away; it is tried again", "sandbox", id, "run", e.Info.Run, "err", err)
			return
		}
	}
	e.State = Destroyed
	if err := m.journal.Enter(ctx, e, Failed, ""); err != nil {
		m.cfg.Log.Error("the end of a create is not in the journal; it is made up for later", "sandbox", id, "run", e.Info.Run, "err", err)
	}
}

// disown has the pool's bookkeeping forget an instance that is a sandbox's now.
func (m *Manager) disown(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.members, id)
}

// shareOf is what a sandbox has of its owner's quota.
func shareOf(info Info) quota.Share {
	return quota.Share{Token: info.Owner.Token, CPU: info.Limits.CPU, MemoryBytes: info.Limits.MemoryBytes, DiskBytes: info.Limits.DiskBytes}
}
