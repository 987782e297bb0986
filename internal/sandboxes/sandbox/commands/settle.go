package commands

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// settleGrace bounds how long the removal of a sandbox waits for the records of
// its last commands.
const settleGrace = 5 * time.Second

// settleCommand puts a command's end and what it installed on record, then lets go
// those who wait for that.
func (t *Table) settleCommand(ctx context.Context, c *tableCommand, exit channel.Exit) {
	defer close(c.settled)
	t.place.Clients.commandEnded()
	end, known, err := t.place.Inventory.Covered(ctx, t.group, t.place.Waits().Steadily)
	if !known {
		return // as below
	}
	if err != nil && ctx.Err() != nil {
		return // the daemon ends; its successor takes the inventory and settles the command
	}
	if err != nil {
		t.cfg.Log.Error("what is installed is not on record", "sandbox", t.place.Info.ID, "err", err)
	}
	faultpoint.Hit(faultpoint.ExecRecorded)
	if err := t.cfg.Door.CommandFinished(ctx, t.place.Info.ID, c.id, exit); err != nil {
		t.cfg.Log.Error("a command's end is not on record", "sandbox", t.place.Info.ID, "command", c.id, "err", err)
	}
	faultpoint.Hit(faultpoint.ExecSettled)
	t.dropCommand(c)
	t.place.Clients.Touch()
	if end != "" {
		t.place.End(end)
	}
}

// settleFailed settles a command that did not start.
func (t *Table) settleFailed(ctx context.Context, c *tableCommand, cause error) {
	t.settleAlone(ctx, c, channel.Exit{Code: 126, Error: cause.Error()})
}

// settleAlone puts a command's end on record without an inventory.
func (t *Table) settleAlone(ctx context.Context, c *tableCommand, exit channel.Exit) {
	defer close(c.settled)
	defer t.dropCommand(c)
	if err := t.cfg.Door.CommandFinished(context.WithoutCancel(ctx), t.place.Info.ID, c.id, exit); err != nil {
		t.cfg.Log.Error("a command's end is not on record", "sandbox", t.place.Info.ID, "command", c.id, "err", err)
	}
}

// ErrStill is that nothing is put on record of what ended in a sandbox while it is paused or
// frozen, because nothing can be asked of it.
var ErrStill = errors.New("the sandbox stands still")

// SettleEnded waits until every command that has ended is on record; ErrStill if that
// can't be. Commands that still run are not waited for.
func (t *Table) SettleEnded(ctx context.Context) error {
	k, err := t.cfg.Keeper.Get(ctx, t.place.Info.ID)
	if err != nil {
		return nil //nolint:nilerr // the sandbox is gone, and with it nothing is left to wait for
	}
	for _, kc := range k.Commands {
		c := t.findCommand(kc.ID)
		if c == nil || kc.Exit == nil {
			continue
		}
		if err := t.awaitSettled(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// awaitSettled waits for a command that has ended, as SettleEnded does. It may be a moment before the
// command's follower hears of that, so that once is not enough to hurry.
func (t *Table) awaitSettled(ctx context.Context, c *tableCommand) error {
	again := time.NewTicker(hurryAgain)
	defer again.Stop()
	for {
		t.place.Inventory.Hurry()
		select {
		case <-c.settled:
			return nil
		case <-again.C:
			if state := t.place.State(); state == journal.Paused || state == journal.Frozen {
				return ErrStill
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hurryAgain is far below what an inventory takes.
const hurryAgain = 5 * time.Millisecond

// SettleAll gives the records of ended commands a moment before their sandbox
// is destroyed. Of one that is frozen, or could not be thawed, nothing can be asked, so that
// it would wait in vain: SettleCut puts these ends on record.
func (t *Table) SettleAll(ctx context.Context) {
	if k, err := t.cfg.Keeper.Get(ctx, t.place.Info.ID); err == nil && k.Frozen {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	if err := t.SettleEnded(ctx); err != nil {
		t.cfg.Log.Warn("a sandbox is destroyed before its last command was on record", "sandbox", t.place.Info.ID)
	}
}

// SettleCut puts the ends of those commands on record that were cut off with
// their sandbox.
func (t *Table) SettleCut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	for _, c := range t.listCommands() {
		if t.awaitSettled(ctx, c) != nil {
			t.cfg.Log.Warn("a command's end is not on record before its sandbox's", "sandbox", t.place.Info.ID, "command", c.id)
		}
	}
}
