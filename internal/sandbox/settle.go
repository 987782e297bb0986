package sandbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
)

// settle puts a command's end and what it installed on record, then lets go
// those who wait for that.
func (m *Manager) settle(ctx context.Context, s *Sandbox, c *command, exit channel.Exit) {
	defer close(c.settled)
	s.mu.Lock()
	s.unseen = s.attached == 0
	s.mu.Unlock()
	end, known, err := s.inventory.Covered(ctx, &m.background, s.waits.Steadily)
	if !known {
		return // as below
	}
	if err != nil && ctx.Err() != nil {
		return // the daemon ends; its successor takes the inventory and settles the command
	}
	if err != nil {
		m.cfg.Log.Error("what is installed is not on record", "sandbox", s.info.ID, "err", err)
	}
	faultpoint.Hit(faultpoint.ExecStocked)
	if err := m.cfg.Door.CommandFinished(ctx, s.info.ID, c.id, exit); err != nil {
		m.cfg.Log.Error("a command's end is not on record", "sandbox", s.info.ID, "command", c.id, "err", err)
	}
	faultpoint.Hit(faultpoint.ExecSettled)
	s.drop(c)
	s.used()
	if end != "" {
		m.endFor(s, end)
	}
}

// settleFailed is for a command that did not start.
func (m *Manager) settleFailed(ctx context.Context, s *Sandbox, c *command, cause error) {
	defer close(c.settled)
	defer s.drop(c)
	exit := channel.Exit{Code: 126, Error: cause.Error()}
	if err := m.cfg.Door.CommandFinished(context.WithoutCancel(ctx), s.info.ID, c.id, exit); err != nil {
		m.cfg.Log.Error("a command's end is not on record", "sandbox", s.info.ID, "command", c.id, "err", err)
	}
}

// Settle waits until every command of a run that has ended is on record.
// Commands that still run are not waited for, nor are sandboxes that stand still: what
// has ended in these is on record some time after they go on, which may be days.
func (m *Manager) Settle(ctx context.Context, run string) error {
	for _, s := range m.List() {
		if s.info.Run != run {
			continue
		}
		if err := m.settleEnded(ctx, s); err != nil && !errors.Is(err, errStill) {
			return err
		}
	}
	return nil
}

// errStill: nothing is put on record of what ended in a sandbox while it is paused or
// frozen, because nothing can be asked of it.
var errStill = errors.New("the sandbox stands still")

// settleEnded waits for the commands of one sandbox; errStill if that can't be.
func (m *Manager) settleEnded(ctx context.Context, s *Sandbox) error {
	k, err := m.cfg.Keeper.Get(ctx, s.info.ID)
	if err != nil {
		return nil //nolint:nilerr // the sandbox is gone, and with it nothing is left to wait for
	}
	for _, kc := range k.Commands {
		s.mu.Lock()
		c := s.commands[kc.ID]
		s.mu.Unlock()
		if c == nil || kc.Exit == nil {
			continue
		}
		if err := s.awaitSettled(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// awaitSettled waits for a command that has ended, as settleEnded does. It may be a moment before the
// command's follower hears of that, so that once is not enough to hurry.
func (s *Sandbox) awaitSettled(ctx context.Context, c *command) error {
	again := time.NewTicker(hurryAgain)
	defer again.Stop()
	for {
		s.inventory.Hurry()
		select {
		case <-c.settled:
			return nil
		case <-again.C:
			if state, _ := s.State(); state == Paused || state == Frozen {
				return errStill
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hurryAgain is far below what an inventory takes.
const hurryAgain = 5 * time.Millisecond

// settleAll gives the records of ended commands a moment before their sandbox
// is destroyed.
func (m *Manager) settleAll(ctx context.Context, s *Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	if err := m.settleEnded(ctx, s); err != nil {
		m.cfg.Log.Warn("a sandbox is destroyed before its last command was on record", "sandbox", s.info.ID)
	}
}

// settleCut puts the ends of those commands on record that were cut off with
// their sandbox.
func (m *Manager) settleCut(ctx context.Context, s *Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	s.mu.Lock()
	cut := slices.Collect(maps.Values(s.commands))
	s.mu.Unlock()
	for _, c := range cut {
		if s.awaitSettled(ctx, c) != nil {
			m.cfg.Log.Warn("a command's end is not on record before its sandbox's", "sandbox", s.info.ID, "command", c.id)
		}
	}
}
