package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/ends"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/waiting"
)

// enter moves a sandbox to another state; fault.ErrConflict if there is no such
// move. A journal that can't be written keeps nobody from that: it is made up for
// by the next reconcile.
func (m *Manager) enter(ctx context.Context, s *Sandbox, to State, reason string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return m.step(ctx, s, to, reason)
}

// step needs s.turn.
func (m *Manager) step(ctx context.Context, s *Sandbox, to State, reason string) error {
	if !s.told.MayBecome(to) {
		return fault.New(fault.ErrConflict, "the sandbox %s is %s and can't become %s", s.info.ID, s.told, to)
	}
	m.correct(ctx, s, to, reason)
	return nil
}

// correct has a sandbox in a state, whatever it was in. Needs s.turn.
func (m *Manager) correct(ctx context.Context, s *Sandbox, to State, reason string) {
	switch to {
	case Running, Snapshotting, Destroying, Destroyed, Failed, Creating:
		s.setState(to)
	case Freezing, Frozen, Paused, Thawing: // the list's
	}
	s.told = to
	if err := m.journal.Enter(ctx, m.entryOf(s), s.written, reason); err != nil {
		m.cfg.Log.Error("a sandbox's change of state is not in the journal; it is made up for later", "sandbox", s.info.ID, "run", s.info.Run, "to", to, "err", err)
		return
	}
	s.written = to
}

// entryOf is a sandbox as the journal has it. Needs s.turn.
func (m *Manager) entryOf(s *Sandbox) Entry {
	return Entry{Info: s.info, State: s.told, Clock: m.clockOf(s), Key: s.key, Request: s.request, First: s.first}
}

func (m *Manager) clockOf(s *Sandbox) Clock {
	v, _ := m.ends.View(s.info.ID)
	boot, at := m.cfg.Boot()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Clock{Lifetime: s.lifetime, Left: v.Left, Still: v.Still, Boot: boot, At: at}
}

// rewrite brings the journal up to date with what has changed but its state, and
// with what could not be written before.
func (m *Manager) rewrite(ctx context.Context, s *Sandbox) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.told == Destroyed {
		return
	}
	var err error
	if s.written == s.told {
		err = m.journal.Put(ctx, m.entryOf(s))
	} else if err = m.journal.Enter(ctx, m.entryOf(s), s.written, "told late, because the journal could not be written"); err == nil {
		s.written = s.told
	}
	if err != nil {
		m.cfg.Log.Error("a sandbox can't be written to the journal", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
}

// moved follows the sandbox's way to disk and back.
func (m *Manager) moved(s *Sandbox, to waiting.State) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.told.Ends() {
		return // what takes it away comes after all of that
	}
	switch to {
	case waiting.Paused:
		m.quotas.Rest(s.info.ID)
	case waiting.Thawing, waiting.Running: // whoever let it go on has asked for its share
		m.quotas.Stir(s.info.ID)
	case waiting.Freezing, waiting.Frozen:
	}
	if err := m.step(m.ctx, s, State(to), ""); err != nil {
		m.cfg.Log.Error("a sandbox went a way that there is not", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
}

// terms are what the schedule knows of a lifetime.
func terms(l Lifetime) ends.Terms { return ends.Terms{TTL: l.TTL, Idle: l.Idle} }

// SetLifetime replaces when the sandbox ends, from now on. A sandbox whose time is
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
		if err := m.canPause(ctx, s.info.Engine); err != nil {
			return err
		}
	}
	if err := m.extend(ctx, s, l); err != nil {
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

func (m *Manager) extend(ctx context.Context, s *Sandbox, l Lifetime) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.told.Ends() {
		return fault.New(fault.ErrConflict, "the sandbox %s is %s", s.info.ID, s.told)
	}
	if s.waits.View().State == waiting.Paused {
		m.ends.Renew(s.info.ID) // whose time was over has had its end, and has another one
	}
	if err := m.ends.Set(s.info.ID, terms(l)); err != nil {
		return err
	}
	s.mu.Lock()
	s.lifetime = l
	s.mu.Unlock()
	if err := m.journal.Put(context.WithoutCancel(ctx), m.entryOf(s)); err != nil {
		m.cfg.Log.Error("a change of a sandbox's end is not in the journal; it is made up for later", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
	return nil
}

// extensionRecords is how often at most an extension is recorded: a client may keep
// its sandbox alive by one every few seconds.
const extensionRecords = time.Minute

// toRecord tells whether an extension is to be recorded now.
func (s *Sandbox) toRecord(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.extended.IsZero() && now.Sub(s.extended) < extensionRecords {
		return false
	}
	s.extended = now
	return true
}

// Touch tells that a client uses the sandbox: it is not idle.
func (m *Manager) Touch(id string) {
	s, err := m.Get(id)
	if err != nil {
		return
	}
	s.clients.Touch()
}

// Ends is when the sandbox ends if nobody uses it and nothing changes, and as if it
// went on now if its time stands still; zero: never.
func (s *Sandbox) Ends() time.Time {
	v, _ := s.ends.View(s.info.ID)
	return v.Ends
}

// Lifetime is what was set last.
func (s *Sandbox) Lifetime() Lifetime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lifetime
}

// expired takes what the schedule tells: sandboxes whose time is over, a few at one
// time.
func (m *Manager) expired(id string, why ends.Cause) {
	owner := ""
	if s, err := m.Get(id); err == nil {
		owner = s.info.Owner.Token
	}
	m.crew.do(owner, func() {
		if s, err := m.Get(id); err == nil && m.ctx.Err() == nil {
			m.timeOver(s, why)
		}
	})
}

func (m *Manager) timeOver(s *Sandbox, why ends.Cause) {
	id := s.info.ID
	if why == ends.CauseIdle && (s.clients.Any() || s.commands.Any()) {
		m.ends.Busy(id)
		return
	}
	reason := "its time is over"
	if why == ends.CauseIdle {
		reason = "nobody used it for its idle time"
	}
	if then := s.Lifetime().Then; then.Pauses() {
		err := m.pause(m.ctx, id, then == ThenPauseFiles)
		if err == nil || s.waits.View().State == waiting.Paused { // a client was faster
			m.ends.Renew(id)
			return
		}
		if m.ctx.Err() != nil {
			return // the next daemon finds its time over
		}
		m.cfg.Log.Error("a sandbox whose time is over can't be paused and is destroyed", "sandbox", id, "run", s.info.Run, "err", err)
		reason += ", and it could not be paused"
	}
	if err := m.end(m.ctx, s, reason); err != nil && !errors.Is(err, context.Canceled) {
		m.cfg.Log.Error("a sandbox whose time is over can't be destroyed", "sandbox", id, "run", s.info.Run, "err", err)
	}
}

// snapshotting has a running sandbox stand as one that is being copied; leave ends
// that.
func (m *Manager) snapshotting(ctx context.Context, s *Sandbox) (leave func(), err error) {
	if err := m.enter(ctx, s, Snapshotting, ""); err != nil {
		return nil, err
	}
	return func() {
		s.turn.Lock()
		defer s.turn.Unlock()
		if s.told == Snapshotting { // it may be being destroyed meanwhile
			m.correct(ctx, s, Running, "")
		}
	}, nil
}
