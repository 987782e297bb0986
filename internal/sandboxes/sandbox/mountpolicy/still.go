package mountpolicy

import (
	"errors"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// CheckStill tells whether what a sandbox shows of the host may still be shown: since it was checked, the host may have mounted below a
// source what belongs to its kernel, or where Cofferdam keeps its own state, and a sandbox that is made or goes on is shown a source with all
// that is mounted below it. It is a fault.ErrConflict if not. ofTemplate are where mounts of the template lie, which nobody asked for.
func (r Rules) CheckStill(all []engine.Mount, ofTemplate []string) error {
	table, err := hostpath.ReadTable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the host's table of mounts can't be read")
	}
	for _, m := range all {
		if m.Source == "" || m.ReadOnly && slices.Contains(ofTemplate, m.Destination) || r.isOwnSource(m.Source) {
			continue
		}
		err := r.checkPlaceIn(table, m.Source)
		if errors.Is(err, fault.ErrInvalid) {
			return fault.New(fault.ErrConflict, "what the sandbox shows was changed on the host since it was checked: %s", fault.Sentence(err, ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isOwnSource tells of what lies in the installation's own directories, such as the agent and homes. Nobody can ask for any of it.
func (r Rules) isOwnSource(source string) bool {
	return slices.ContainsFunc(r.Own, func(own string) bool { return isWithin(source, own) })
}
