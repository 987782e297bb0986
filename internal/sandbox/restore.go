package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
)

// agentPlace is where the guest agent's files are shown.
const agentPlace = "/.cofferdam/bin"

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

// takeUp gives the commands that ran in a copy's source a place in the copy.
func (m *Manager) takeUp(ctx context.Context, s *Sandbox, from *origin) (follow func(), err error) {
	faultpoint.Hit(faultpoint.RestoreConfigured)
	if from == nil || from.contents != engine.ContentsMemory {
		return nil, nil //nolint:nilnil // nothing goes on in it
	}
	if err := m.stopClocks(ctx, s.info.ID, false); err != nil { // the source may have waited for a person; the copy does not
		return nil, err
	}
	return s.commands.Adopt(ctx, from.Of.ID, from.Commands)
}
