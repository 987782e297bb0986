package sandbox

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// Start starts a command: judged and recorded first. A refusal is
// fault.ErrForbidden with the rule's reason.
func (m *Manager) Start(ctx context.Context, id string, c Command) (started keeper.Command, err error) {
	ctx, done := m.spans.beginSpan(ctx, VerbExec, id)
	defer func() { done(nil, started.ID, err) }()
	s, err := m.Get(id)
	if err != nil {
		return keeper.Command{}, err
	}
	return s.commands.Start(ctx, c)
}

// Elevated runs a command to its end as root, with rights that nothing else in a sandbox has: to
// give files away, to write those of others, and to become another user. It is judged and
// recorded as by Start. One that does not end with 0 ends its sandbox.
func (m *Manager) Elevated(ctx context.Context, id string, e Elevated) (exit channel.Exit, err error) {
	ctx, done := m.spans.beginSpan(ctx, VerbExec, id)
	defer func() { done(nil, "", err) }()
	s, err := m.Get(id)
	if err != nil {
		return channel.Exit{}, err
	}
	return s.commands.Elevated(ctx, e)
}

// Kernels is what runs a sandbox's cells.
func (m *Manager) Kernels(id string) (*commands.Table, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	return s.commands, nil
}

// Attach returns a connection with the command's frames from the offset on.
func (m *Manager) Attach(ctx context.Context, id, cmd string, offset int64) (net.Conn, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	return s.commands.Attach(ctx, cmd, offset)
}

// Commands returns the keeper's view of a sandbox's commands. Kernels are none of a client's.
func (m *Manager) Commands(ctx context.Context, id string) ([]keeper.Command, error) {
	if _, err := m.Get(id); err != nil {
		return nil, err
	}
	k, err := m.cfg.Keeper.Get(ctx, id)
	return slices.DeleteFunc(k.Commands, func(c keeper.Command) bool { return commands.IsKernel(c.ID) }), err
}

// Written returns what is kept of a command's output, with its times. Its reader is no client that the command waits for.
func (m *Manager) Written(ctx context.Context, id, cmd string) (keeper.Output, error) {
	if _, err := m.Get(id); err != nil {
		return keeper.Output{}, err
	}
	out, err := m.cfg.Keeper.Output(ctx, id, cmd)
	if err != nil {
		return out, err
	}
	return m.outgoing.Written(ctx, id, cmd, out)
}

// Started are a sandbox's commands that have not ended, in the order of their ids.
func (m *Manager) Started(id string) ([]Started, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	return s.commands.Started(), nil
}

// Settle waits until every command of a run that has ended is on record.
// Commands that still run are not waited for, nor are sandboxes that stand still: what
// has ended in these is on record some time after they go on, which may be days.
func (m *Manager) Settle(ctx context.Context, run string) error {
	for _, s := range m.List() {
		if s.info.Run != run {
			continue
		}
		if err := s.commands.SettleEnded(ctx); err != nil && !errors.Is(err, commands.ErrStill) {
			return err
		}
	}
	return nil
}

// maxOutput bounds what Output collects.
const maxOutput = 1 << 20

// Output runs one command in a sandbox of its own and returns what it wrote to
// standard output. It is for the daemon's own questions to a template; they are
// judged and recorded like anybody's.
func (m *Manager) Output(ctx context.Context, req Request, argv []string) ([]byte, error) {
	s, err := m.Create(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := m.Destroy(context.WithoutCancel(ctx), s.info.ID); err != nil {
			m.cfg.Log.Error("a sandbox can't be destroyed", "sandbox", s.info.ID, "err", err)
		}
	}()
	return s.commands.Output(ctx, Command{Argv: argv, CapBytes: maxOutput})
}
