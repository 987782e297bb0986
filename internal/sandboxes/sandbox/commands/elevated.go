package commands

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Elevated asks for a command of root's with rights that nothing else in the sandbox has. It
// has no input, begins in /, and finds nothing of the sandbox's environment.
type Elevated struct {
	Argv    []string
	Judged  string        // as of a Command
	Timeout time.Duration // as of a Command
	Stdout  io.Writer     // both are written to until the command ends, at the same time
	Stderr  io.Writer
}

// Elevated runs such a command to its end: judged and recorded first. Of one that ends with 0
// it is known that nothing is left. Any other ends the sandbox, in which something might
// still have its rights.
func (t *Table) Elevated(ctx context.Context, e Elevated) (channel.Exit, error) {
	if !t.elevating.CompareAndSwap(false, true) {
		return channel.Exit{}, fault.New(fault.ErrConflict, "the sandbox %s installs packages already", t.place.Info.ID)
	}
	defer t.elevating.Store(false)
	cmd, err := t.admitCommand(ctx, Command{Argv: e.Argv, Judged: e.Judged, User: "root", Dir: "/"})
	if err != nil {
		return channel.Exit{}, err
	}
	t.place.Inventory.AsRoot("root")
	t.holdCommand(cmd)
	limited := ctx
	if limit := shorter(e.Timeout, t.place.Limit); limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	code, err := t.place.Elevate(limited, e)
	exit := channel.Exit{Code: code}
	if err == nil && code == 0 {
		safego.In(t.group, func() { t.settleCommand(t.life, cmd, exit) })
		if err := t.awaitSettled(ctx, cmd); !errors.Is(err, ErrStill) {
			return exit, err
		}
		return exit, nil // its end is on record some time after the sandbox goes on
	}
	if err != nil {
		exit = channel.Exit{Code: 137, Error: "the command was cut off, and its sandbox with it", TimedOut: errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil}
		t.cfg.Log.Warn("a command with rights was cut off; its sandbox is destroyed", "sandbox", t.place.Info.ID, "command", cmd.id, "err", err)
	}
	if exit.TimedOut {
		err = nil // the exit says it
	}
	if kerr := t.place.Kill(context.WithoutCancel(ctx)); kerr != nil {
		t.cfg.Log.Error("a sandbox can't be killed", "sandbox", t.place.Info.ID, "err", kerr)
		exit.Error = "the command was cut off, and its sandbox could not be destroyed: the command may run on; destroy the sandbox"
		err = errors.Join(err, kerr)
	}
	t.settleAlone(context.WithoutCancel(ctx), cmd, exit)
	return exit, err
}
