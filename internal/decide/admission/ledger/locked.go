package ledger

import (
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxSpecifier is the longest specifier that is read, in bytes. A longer one admits nothing.
const MaxSpecifier = 512

// lockfilePins are what the run's lockfiles pin of a project.
func (l *Ledger) lockfilePins(project pkgref.Ref) []policy.Pin {
	if l.lock == nil {
		return nil
	}
	if lock := l.lock.For(project); lock != nil {
		return lock.Pins
	}
	return nil // none is of its ecosystem
}

// FollowLock takes what the run's lockfiles say that their releases require. A
// client that installs from a lockfile reads no metadata and asks for files in
// any order, so the edges have to be there before its first request. They are
// the word of the lockfile, which a person gave and the agent can't change; an
// edge still needs an entry that admits its parent, and leads only to what the
// lockfiles pin, whose digests are then compared: also in the mode prefer, which
// leaves other names to the policy.
func (l *Ledger) FollowLock() error {
	if l.lock == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	projects := map[pkgref.Ref]bool{}
	for parent, list := range l.lock.Requires() {
		if !l.rules.Policy().UsesEdges(parent.Ecosystem) {
			continue
		}
		reqs := make([]door.Requirement, 0, len(list))
		for _, q := range list {
			child := pkgref.Ref{Ecosystem: parent.Ecosystem, Name: q.Name}
			if len(l.lockfilePins(child)) == 0 {
				continue // a lockfile lets in what it pins, or less
			}
			if len(q.Specifier) <= MaxSpecifier && len(reqs) < l.limits.EdgesPerParent {
				reqs = append(reqs, door.Requirement{Name: q.Name, Specifier: q.Specifier})
			}
		}
		if err := l.setRelease(parent, reqs); err != nil {
			return err
		}
		l.releases.Move(parent, Event{Kind: Listed})
		l.required[parent.Project()].locked = true
		projects[parent.Project()] = true
	}
	for project := range projects {
		err := l.spread(project)
		if errors.Is(err, fault.ErrUnavailable) {
			return nil // the imported facts can't be read, so every package is refused, and says so
		}
		if err != nil {
			return err
		}
	}
	return nil
}
