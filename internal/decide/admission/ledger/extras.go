package ledger

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// extras are those of projects that admitted releases ask for. They lack what an entry of the policy names, or a lockfile pins.
type extras map[pkgref.Ref]map[string]bool

// counts tells whether a requirement of a project's releases is one of this run: no
// extra brings it, something asks for one that does, or whoever gave a lockfile that
// pins what it requires did. mu is held.
func (l *Ledger) counts(project pkgref.Ref, q door.Requirement) bool {
	if q.Under == "" {
		return true
	}
	for extra := range strings.SplitSeq(q.Under, ",") {
		if l.extras[project][extra] {
			return true
		}
	}
	if l.rules.Policy().AsksExtra(project, q.Under) {
		return true
	}
	return len(l.lockfilePins(pkgref.Ref{Ecosystem: project.Ecosystem, Name: q.Name})) > 0
}

// askExtras notes that extras of a project are asked for, given with commas between, and
// whether that is new. The requirements of its releases for them are then to be made edges of.
// mu is held.
func (l *Ledger) askExtras(project pkgref.Ref, asked string) (fresh bool) {
	for extra := range strings.SplitSeq(asked, ",") {
		known := l.extras[project]
		if extra == "" || known[extra] || len(known) >= pkgref.MaxExtras {
			continue
		}
		if known == nil {
			known = map[string]bool{}
			l.extras[project] = known
		}
		known[extra], fresh = true, true
	}
	return fresh
}
