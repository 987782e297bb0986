package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// search is for what to read next on the way to a package; mu is held as long as it
// lives.
type search struct {
	l      *Ledger
	ask    door.ReachAsk
	now    time.Time
	main   map[string]bool // names that main releases require
	wanted map[string]bool // projects of which a release requires the wanted name
	near   bool            // what was asked for or is locked leads to it
	found  []candidate
	bound  string // what kept something from being found, in words
}

func (l *Ledger) search(ask door.ReachAsk, now time.Time) *search {
	q := &search{l: l, ask: ask, now: now, main: l.mainly(ask), wanted: map[string]bool{}}
	for _, edge := range l.edges.byPackage[ask.Package.Project()].List {
		q.wanted[edge.Parent.Name] = true
	}
	return q
}

// searchFrom finds what is worth reading of the entries, and of what these lead to.
func (q *search) searchFrom(roots []string) {
	l, e, seen := q.l, q.ask.Package.Ecosystem, map[pkgref.Ref]bool{}
	add := func(project pkgref.Ref, depth int) {
		if seen[project] {
			return
		}
		seen[project] = true
		if c, ok := q.candidate(project, depth); ok {
			q.found = append(q.found, c)
		}
	}
	for _, name := range roots {
		add(pkgref.Ref{Ecosystem: e, Name: name}, 0)
	}
	for project, to := range l.edges.byPackage {
		if project.Ecosystem != e {
			continue
		}
		switch depth, ok := l.depthOf(q.ask, to.List); {
		case ok && depth <= MaxDepth:
			add(project, depth)
		case ok && !seen[project]:
			q.bound = fmt.Sprintf("it may be more than %d requirements away from every entry", MaxDepth)
		}
	}
}

// hasProject tells whether a project was found.
func (q *search) hasProject(project pkgref.Ref) bool {
	return slices.ContainsFunc(q.found, func(c candidate) bool { return c.Project == project })
}

// fromAsked finds what is worth reading for a name that only its likeness refuses: the
// releases that the client asks for, as far as they may be had, and those that a lockfile
// of the run says to require it. They are what the run lets in anyway.
func (q *search) fromAsked() {
	l, wanted := q.l, q.ask.Package.Project()
	parents := map[pkgref.Ref]bool{}
	for project, versions := range l.walk.asked {
		parents[project] = len(versions) > 0
	}
	if l.lock != nil {
		for parent, list := range l.lock.Requires() {
			if slices.ContainsFunc(list, func(r lockfile.Requirement) bool { return r.Name == wanted.Name }) {
				parents[parent.Project()] = true
			}
		}
	}
	for project, may := range parents {
		if !may || project == wanted || project.Ecosystem != wanted.Ecosystem || q.hasProject(project) {
			continue
		}
		if c, ok := q.candidate(project, 0); ok {
			q.found = append(q.found, c)
		}
	}
}
