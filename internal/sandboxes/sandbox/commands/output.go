package commands

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Output runs a command and returns what it wrote to standard output. It fails if the
// command does. One whose end nobody waits for is killed.
func (t *Table) Output(ctx context.Context, c Command) ([]byte, error) {
	cmd, err := t.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.output(ctx, cmd.ID, c.Argv[0])
}

// output collects what a process writes, which nobody else sees. One that has not ended is killed.
func (t *Table) output(ctx context.Context, id, name string) ([]byte, error) {
	conn, err := t.cfg.Keeper.Attach(ctx, t.place.Info.ID, id, 0)
	if err != nil {
		t.killSurely(id, "its output can't be read")
		return nil, err
	}
	defer conn.Close()
	defer safego.When(ctx, func() { conn.Close() })()
	out, ended, err := collect(channel.NewConn(conn), name)
	if !ended {
		t.killSurely(id, "its output was cut short")
	}
	return out, err
}

// collect reads frames up to the exit, which ended tells of. The output before an error comes with it.
func collect(frames *channel.Conn, name string) (written []byte, ended bool, err error) {
	var out, complaint bytes.Buffer
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			return out.Bytes(), false, fault.Wrap(fault.ErrUnavailable, err, "the output of %s was cut short", name)
		}
		switch kind { //nolint:exhaustive // input frames do not come from a keeper
		case channel.FrameStdout:
			out.Write(payload)
		case channel.FrameStderr:
			complaint.Write(payload)
		case channel.FrameExit:
			var exit channel.Exit
			if err := json.Unmarshal(payload, &exit); err != nil {
				return out.Bytes(), true, err
			}
			if exit.Code != 0 {
				return out.Bytes(), true, fault.New(fault.ErrUnavailable, "%s ended with %d: %.500q %s", name, exit.Code, complaint.String(), exit.Error)
			}
			return out.Bytes(), true, nil
		}
	}
}

// Unjudged runs a command of the daemon's own, whose argv nobody else has a part in, and
// returns what it wrote to standard output, with an error too. No policy judges it, and
// only the sandbox's own life is on record.
func (t *Table) Unjudged(ctx context.Context, c Command) ([]byte, error) {
	if err := checkCommand(c); err != nil {
		return nil, err
	}
	id := journal.NewID("cmd-", 6)
	exec := channel.Exec{ID: id, Argv: c.Argv, Dir: c.Dir, User: t.place.Info.Account.User(c.User), Timeout: c.Timeout.Milliseconds()}
	options := keeper.ExecOptions{RingBytes: ringBytes, CapBytes: c.CapBytes, AwaitReader: true}
	if _, err := t.beginProcess(ctx, start{exec: exec, options: options}); err != nil {
		return nil, err
	}
	return t.output(ctx, id, c.Argv[0])
}
