package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/copies"
)

// register makes a new sandbox known to the door.
func (m *Manager) register(ctx context.Context, run admission.Run, from *copies.Origin) error {
	if from == nil {
		return m.cfg.Door.Register(run)
	}
	return m.copies.Register(ctx, run, from)
}

// start makes the instance: from the template, or as a copy.
func (m *Manager) start(ctx context.Context, p *plan, from *copies.Origin) (engine.Instance, error) {
	if from == nil {
		return p.engine.Create(ctx, p.spec)
	}
	return m.copies.Restore(ctx, p.engine, p.spec, from)
}

// takeUp gives the commands that ran in a copy's source a place in the copy.
func (m *Manager) takeUp(ctx context.Context, s *Sandbox, from *copies.Origin) (follow func(), err error) {
	faultpoint.Hit(faultpoint.RestoreConfigured)
	if from == nil || from.Contents != engine.ContentsMemory {
		return nil, nil //nolint:nilnil // nothing goes on in it
	}
	if err := m.stopClocks(ctx, s.info.ID, false); err != nil { // the source may have waited for a person; the copy does not
		return nil, err
	}
	return s.commands.Adopt(ctx, from.Of.ID, from.Commands)
}
