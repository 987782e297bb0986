package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// agentPlace is where the guest agent's files are shown.
const agentPlace = "/.cofferdam/bin"

// copied is a command that ran when a copy was made.
type copied struct {
	ID       string    `json:"id"`
	Argv     []string  `json:"argv"`
	Terminal bool      `json:"terminal,omitempty"`
	Started  time.Time `json:"started"`
}

// running are the commands that a copy may have, of those that the keeper knows: it
// was made after began.
func running(commands []keeper.Command, began time.Time) []copied {
	var all []copied
	for _, c := range commands {
		if c.Exit == nil || !c.Ended.Before(began) {
			all = append(all, copied{ID: c.ID, Argv: c.Argv, Terminal: c.Terminal, Started: c.Started})
		}
	}
	return all
}

// start makes the instance: from the template, or as a copy, which is on record
// first.
func (m *Manager) start(ctx context.Context, p *plan, from *origin) (engine.Instance, error) {
	if from == nil {
		return p.engine.Create(ctx, p.spec)
	}
	if err := m.cfg.Door.SandboxRestored(ctx, p.info.ID, from.copyOf()); err != nil {
		return nil, err
	}
	restorer, ok := p.engine.(engine.Restorer)
	if !ok {
		return nil, fault.New(fault.ErrUnavailable, "the engine %s can't make sandboxes from copies", p.engine.Name())
	}
	inst, err := restorer.Restore(ctx, p.spec, from.image)
	if err != nil {
		return nil, err
	}
	faultpoint.Hit(faultpoint.RestoreBooted)
	return inst, nil
}

// takeUp gives the commands that ran in a copy's source a place in the copy: they
// are on record, can be attached to, and their ends are waited for. One that the
// guest does not know had ended, or had not begun.
func (m *Manager) takeUp(ctx context.Context, s *Sandbox, from *origin) ([]*command, error) {
	faultpoint.Hit(faultpoint.RestoreConfigured)
	if from == nil || from.contents != engine.ContentsMemory {
		return nil, nil
	}
	if err := m.stopClocks(ctx, s.info.ID, false); err != nil { // the source may have waited for a person; the copy does not
		return nil, err
	}
	var all []*command
	for _, c := range from.Commands {
		err := m.cfg.Keeper.Adopt(ctx, s.info.ID, keeper.Command{ID: c.ID, Argv: c.Argv, Terminal: c.Terminal, Started: c.Started}, keeper.ExecOptions{RingBytes: ringBytes})
		if errors.Is(err, fault.ErrNotFound) {
			m.cfg.Log.Debug("a command is not in the copy", "sandbox", s.info.ID, "command", c.ID)
			continue
		}
		if err == nil {
			err = m.cfg.Door.CommandCopied(ctx, s.info.ID, c.ID, from.Of.ID, c.Argv)
		}
		if err != nil {
			return nil, fmt.Errorf("the command %s goes on in the copy and can't be taken over: %w", c.ID, err)
		}
		cmd := &command{id: c.ID, settled: make(chan struct{}), argv: c.Argv, dir: s.info.Workdir}
		s.hold(cmd)
		all = append(all, cmd)
	}
	return all, nil
}
