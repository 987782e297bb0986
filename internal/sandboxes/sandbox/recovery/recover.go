package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// adoptsAtOnce is how many sandboxes are taken over at one time: it is waiting for
// the keeper and the disk, for the most part.
const adoptsAtOnce = 16

// Found is a sandbox that the keeper holds.
type Found struct {
	Keeper keeper.Sandbox
	// Entry is the journal's; without one, its Info has no ID.
	Entry journal.Entry
}

// Journaled tells whether the journal has it.
func (f Found) Journaled() bool { return f.Entry.Info.ID != "" }

// Recover has the sandboxes adopted that the keeper holds, and sweeps away what can't be,
// or was not whole when the daemon before died: what it was making or taking away.
func (t *Tidier) Recover(ctx context.Context, adopt func(ctx context.Context, f Found) error) error {
	faultpoint.Hit(faultpoint.RecoverBegun)
	entries, err := t.cfg.Journal.Entries(ctx)
	if err != nil {
		return err
	}
	known := map[string]journal.Entry{}
	for _, e := range entries {
		known[e.Info.ID] = e
	}
	held, err := t.cfg.Keeper.List(ctx)
	if err != nil {
		return err
	}
	inParallel(adoptsAtOnce, held, func(k keeper.Sandbox) {
		f := Found{Keeper: k, Entry: known[k.ID]}
		err := interrupted(f)
		if err == nil {
			err = adopt(ctx, f)
		}
		if err != nil {
			t.cfg.Log.Warn("a sandbox can't be adopted and is swept away", "sandbox", k.ID, "err", err)
			t.giveUp(ctx, f, err.Error())
		}
	})
	t.Reconcile(ctx, KeeperEnded)
	return nil
}

// interrupted is why a sandbox is not adopted that the daemon before was making or
// taking away.
func interrupted(f Found) error {
	if !f.Journaled() {
		return nil
	}
	switch f.Entry.State { //nolint:exhaustive // the others live
	case journal.Creating:
		return errors.New("the daemon died while it was being created, so nobody knows of it")
	case journal.Destroying, journal.Destroyed:
		return errors.New("destroyed")
	case journal.Failed:
		return errors.New("it had failed")
	}
	return nil
}

// giveUp takes away what can't be adopted. The next reconcile tries again what fails.
func (t *Tidier) giveUp(ctx context.Context, f Found, reason string) {
	t.sweepSandbox(ctx, f.Keeper)
	if !f.Journaled() {
		t.recordLost(ctx, f.Keeper.ID, reason)
		return
	}
	if err := t.completeEnd(ctx, f.Entry, reason); err != nil {
		t.cfg.Log.Error("the end of a sandbox can't be completed; it is tried again", "sandbox", f.Keeper.ID, "err", err)
	}
}

// sweepSandbox takes away what the keeper still holds of a sandbox that can't be
// adopted.
func (t *Tidier) sweepSandbox(ctx context.Context, k keeper.Sandbox) {
	if k.Alive {
		if err := t.cfg.Keeper.Kill(ctx, k.ID); err != nil {
			t.cfg.Log.Error("a sandbox can't be killed", "sandbox", k.ID, "err", err)
		}
	}
	for _, eng := range t.cfg.Engines {
		if err := eng.Sweep(ctx, k.ID); err != nil {
			t.cfg.Log.Error("the remains of a sandbox can't be swept away", "sandbox", k.ID, "err", err)
		}
	}
	if err := t.cfg.Keeper.Forget(ctx, k.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
		t.cfg.Log.Error("the keeper can't forget a sandbox", "sandbox", k.ID, "err", err)
	}
}

// How a freeze or thaw that outlived its daemon is waited for.
const (
	moveTimeout = 6 * time.Minute // longer than the keeper gives its slowest step
	movePoll    = 50 * time.Millisecond
)

// AtRest waits until the keeper neither freezes nor thaws a sandbox: what it has begun it
// ends, whatever becomes of the daemon.
func (t *Tidier) AtRest(ctx context.Context, k keeper.Sandbox) (keeper.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	tick := time.NewTicker(movePoll)
	defer tick.Stop()
	for k.Moving {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return k, fmt.Errorf("its freeze or thaw does not end: %w", ctx.Err())
		}
		var err error
		if k, err = t.cfg.Keeper.Get(ctx, k.ID); err != nil {
			return k, err
		}
	}
	return k, nil
}
