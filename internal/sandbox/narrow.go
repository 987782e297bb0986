package sandbox

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Narrow replaces what a sandbox's client gives up of the network; it is on record
// first. A sandbox on disk can be narrowed, too: it counts when it runs again.
func (m *Manager) Narrow(ctx context.Context, id string, n policy.Narrowing) error {
	s, err := m.Get(id)
	if err != nil {
		return err
	}
	switch state, _ := s.State(); state {
	case Destroying, Destroyed, Failed:
		return fault.New(fault.ErrConflict, "the sandbox %s is %s", id, state)
	default:
		return m.cfg.Door.Narrow(ctx, id, n)
	}
}

// Narrowing is what a sandbox's client has given up of the network. A copy begins
// with its source's.
func (m *Manager) Narrowing(id string) policy.Narrowing { return m.cfg.Door.Narrowing(id) }
