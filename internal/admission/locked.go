package admission

import (
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// followLock takes what the run's lockfiles say that their releases require. A
// client that installs from a lockfile reads no metadata and asks for files in
// any order, so the edges have to be there before its first request. They are
// the word of the lockfile, which a person gave and the agent can't change; an
// edge still needs an entry that admits its parent, and leads only to what the
// lockfiles pin, whose digests are then compared: also in the mode prefer, which
// leaves other names to the policy.
func (c *Controller) followLock(t *tenant) error {
	if t.run.Lock == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	projects := map[pkgref.Ref]bool{}
	for parent, list := range t.run.Lock.Requires() {
		if !t.policy().UsesEdges(parent.Ecosystem) {
			continue
		}
		reqs := make([]door.Requirement, 0, len(list))
		for _, q := range list {
			child := pkgref.Ref{Ecosystem: parent.Ecosystem, Name: q.Name}
			if len(t.run.Lock.For(child).Pins) == 0 {
				continue // a lockfile lets in what it pins, or less
			}
			if len(q.Specifier) <= maxSpecifier && len(reqs) < c.config.Limits.EdgesPerParent {
				reqs = append(reqs, door.Requirement{Name: q.Name, Specifier: q.Specifier})
			}
		}
		if err := t.setRelease(parent, reqs, c.config.Limits.Requirements); err != nil {
			return err
		}
		t.releases.Move(parent, ledger.Event{Kind: ledger.Listed})
		t.required[projectOfRef(parent)].locked = true
		projects[projectOfRef(parent)] = true
	}
	for project := range projects {
		err := c.spread(t, project)
		if errors.Is(err, fault.ErrUnavailable) {
			return nil // the imported facts can't be read, so every package is refused, and says so
		}
		if err != nil {
			return err
		}
	}
	return nil
}
