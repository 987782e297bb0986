package mounts

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
)

// Lay checks what was asked for and returns it in the order in which an engine mounts
// it, with guards over the files that decide what a later run may do (the policy and
// the lockfiles, and the mounts' own ignore files), and over all what ignore files hide.
func (r Rules) Lay(asked []Mount, deciding []string) ([]engine.Mount, error) {
	checked := make([]Mount, 0, len(asked))
	var all, over []engine.Mount
	for _, a := range asked {
		c, err := r.Check(a)
		if err != nil {
			return nil, err
		}
		checked = append(checked, c)
		all = append(all, engine.Mount{Source: c.Source, Destination: c.Destination, ReadOnly: !c.ReadWrite})
		hidden, err := hide(c, r.EmptyFile)
		if err != nil {
			return nil, err
		}
		over = append(over, hidden...)
	}
	if err := checkNested(checked); err != nil {
		return nil, err
	}
	// A mount inside of another comes after it, or it would lie below it.
	slices.SortStableFunc(all, func(a, b engine.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	// What the ignore file hides stays hidden: it lies over the guards.
	guards, err := guard(checked, guarded(checked, deciding))
	if err != nil {
		return nil, err
	}
	return slices.Concat(all, guards, over), nil
}
