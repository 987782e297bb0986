package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// followCommand waits for a command's end and settles it. A guest that does not end
// its command at the timeout loses its sandbox. Time in which the sandbox waits for
// a person does not count.
func (t *Table) followCommand(c *tableCommand) {
	ctx := t.life
	if left, guarded := t.leftOf(c); guarded {
		var cancel context.CancelFunc
		ctx, cancel = t.place.Waits().WithTimeout(t.life, left)
		defer cancel()
	}
	exit, err := t.exitOf(ctx, c.id)
	if err != nil && t.life.Err() != nil {
		return // the daemon ends; its successor follows the command
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.cfg.Log.Warn("a guest did not end its command at the timeout; its sandbox is destroyed", "sandbox", t.place.Info.ID, "command", c.id)
		exit = channel.Exit{Code: 137, Signal: "KILL", TimedOut: true, Error: "the sandbox did not end the command at its timeout and was destroyed"}
		if err := t.place.Kill(t.life); err != nil {
			t.cfg.Log.Error("a sandbox can't be killed", "sandbox", t.place.Info.ID, "err", err)
			exit.Error = "the sandbox did not end the command at its timeout, and could not be destroyed: the command may run on; destroy the sandbox"
		}
	}
	if c.unwanted && exit.Signal == "KILL" && exit.Error == "" {
		exit.Error = "whoever asked for it did not wait until it had started, so it was killed"
	}
	faultpoint.Hit(faultpoint.ExecEnded)
	t.settleCommand(t.life, c, exit)
}

// askAgain is how long a keeper that does not answer is left alone.
const askAgain = time.Second

// exitOf waits for a command's end, however often the connection to the keeper breaks: the command
// runs on meanwhile, and only the keeper, or the end of its sandbox, tells that it does not. The
// error is why ctx ended.
func (t *Table) exitOf(ctx context.Context, cmd string) (channel.Exit, error) {
	for {
		exit, err := t.awaitExit(ctx, cmd)
		switch {
		case err == nil:
			return exit, nil
		case ctx.Err() != nil:
			return channel.Exit{}, context.Cause(ctx)
		case errors.Is(err, fault.ErrNotFound):
			return t.unknownTo(ctx)
		case t.place.State().Ends():
			return sandboxEnded(), nil
		}
		t.cfg.Log.Warn("a command can't be followed; it is tried again", "sandbox", t.place.Info.ID, "command", cmd, "err", err)
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return channel.Exit{}, context.Cause(ctx)
		}
	}
}

// sandboxEnded is the end of a command that ended with its sandbox.
func sandboxEnded() channel.Exit { return channel.Exit{Code: 137, Error: "the sandbox ended"} }

// unknownTo is the end of a command that the keeper does not know: its sandbox has ended, unless the
// keeper says that it is there.
func (t *Table) unknownTo(ctx context.Context) (channel.Exit, error) {
	switch _, err := t.cfg.Keeper.Get(ctx, t.place.Info.ID); {
	case ctx.Err() != nil:
		return channel.Exit{}, context.Cause(ctx)
	case err == nil:
		return channel.Exit{Code: 137, Error: "the keeper of the sandbox does not know the command any more, so that nobody knows how it ended: it may run on; destroy the sandbox to be sure"}, nil
	}
	return sandboxEnded(), nil
}

// awaitExit attaches behind the last byte, where only the exit is sent.
func (t *Table) awaitExit(ctx context.Context, cmd string) (channel.Exit, error) {
	conn, err := t.cfg.Keeper.Attach(ctx, t.place.Info.ID, cmd, keeper.Tail)
	if err != nil {
		return channel.Exit{}, err
	}
	defer conn.Close()
	defer safego.When(ctx, func() { conn.Close() })()
	frames := channel.NewConn(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			if ctx.Err() != nil {
				return channel.Exit{}, context.Cause(ctx)
			}
			return channel.Exit{}, err
		}
		if kind != channel.FrameExit {
			continue
		}
		var exit channel.Exit
		err = json.Unmarshal(payload, &exit)
		return exit, err
	}
}

// FollowAgain follows the commands that the previous daemon started, as the keeper knows
// them; those already on record as finished are left alone.
func (t *Table) FollowAgain(ctx context.Context, known []keeper.Command) {
	finished := t.cfg.Door.Finished(ctx, t.place.Info.ID)
	for _, k := range known {
		if finished[k.ID] || IsKernel(k.ID) {
			continue
		}
		c := &tableCommand{id: k.ID, settled: make(chan struct{}), argv: k.Argv, dir: t.place.Info.Workdir}
		t.holdCommand(c)
		if k.Exit == nil { // else it has ended in time, or late, and nobody has to see to it
			t.guardAgain(c, guardTime(timeoutOf(k.TimeoutMS)))
		}
		safego.In(t.group, func() { t.followCommand(c) })
	}
	t.Inherit(nil)
}

// timeoutOf is the timeout of a command of which nothing else is known.
func timeoutOf(milliseconds int64) time.Duration {
	return time.Duration(max(milliseconds, 0)) * time.Millisecond
}

// Copied is a command that ran when a copy was made.
type Copied struct {
	ID       string    `json:"id"`
	Argv     []string  `json:"argv"`
	Terminal bool      `json:"terminal,omitempty"`
	Started  time.Time `json:"started"`
	// TimeoutMS is its time limit in milliseconds; 0: none, or it is not known.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Guard is how much more active time it had before it would have cost its sandbox that; 0: it has no limit, or an
	// earlier version made the copy, of which all of TimeoutMS is given anew.
	Guard time.Duration `json:"guard,omitempty"`
}

// Running are the commands that a copy may have, of those that the keeper knows: it
// was made after began.
func (t *Table) Running(commands []keeper.Command, began time.Time) []Copied {
	var all []Copied
	for _, c := range commands {
		if c.Exit == nil || !c.Ended.Before(began) {
			all = append(all, Copied{ID: c.ID, Argv: c.Argv, Terminal: c.Terminal, Started: c.Started, TimeoutMS: c.TimeoutMS, Guard: t.guardLeft(c.ID)})
		}
	}
	return all
}

// Adopt gives commands that ran in a copy's source a place in the copy: they are on
// record, can be attached to, and their ends are waited for by follow. One that the guest
// does not know had ended, or had not begun.
func (t *Table) Adopt(ctx context.Context, source string, copied []Copied) (follow func(), err error) {
	var all []func()
	id := t.place.Info.ID
	for _, c := range copied {
		err := t.cfg.Keeper.Adopt(ctx, id, keeper.Command{ID: c.ID, Argv: c.Argv, Terminal: c.Terminal, Started: c.Started}, keeper.ExecOptions{RingBytes: ringBytes})
		if errors.Is(err, fault.ErrNotFound) {
			t.cfg.Log.Debug("a command is not in the copy", "sandbox", id, "command", c.ID)
			continue
		}
		if err == nil && IsKernel(c.ID) {
			continue // its contexts are found by it
		}
		if err == nil {
			err = t.cfg.Door.CommandCopied(ctx, id, c.ID, source, c.Argv)
		}
		if err != nil {
			return nil, fmt.Errorf("the command %s goes on in the copy and can't be taken over: %w", c.ID, err)
		}
		cmd := &tableCommand{id: c.ID, settled: make(chan struct{}), argv: c.Argv, dir: t.place.Info.Workdir}
		t.holdCommand(cmd)
		guard := c.Guard
		if guard == 0 {
			guard = guardTime(timeoutOf(c.TimeoutMS))
		}
		t.guardCommand(cmd, guard)
		all = append(all, func() { t.followCommand(cmd) })
	}
	return func() {
		for _, followOne := range all {
			safego.In(t.group, followOne)
		}
	}, nil
}
