package ledger

import (
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// task is a project to look at because it has new requirements (edges are all
// that lead to it) or because edges that lead to it are new.
type task struct {
	project pkgref.Ref
	edges   []policy.Edge
}

// spread makes edges of what admitted releases of a project require. That can
// admit releases whose requirements came earlier, as clients read a page or a
// go.mod once; so it goes on with these. mu is held.
func (l *Ledger) spread(project pkgref.Ref) error {
	queue := []task{{project, l.edges.byPackage[project].List}}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		fresh, err := l.edgesFrom(next)
		if err != nil {
			return err
		}
		l.edges.addBatch(fresh)
		more := map[pkgref.Ref][]policy.Edge{}
		var order []pkgref.Ref
		for _, e := range fresh.edges {
			child := pkgref.Ref{Ecosystem: e.Parent.Ecosystem, Name: e.Name}
			if e.Through == "" || l.required[child] == nil {
				continue // it admits nothing, or is asked about later
			}
			if more[child] == nil {
				order = append(order, child)
			}
			more[child] = append(more[child], e)
		}
		for _, child := range order {
			queue = append(queue, task{child, more[child]})
		}
		for _, child := range slices.SortedFunc(maps.Keys(fresh.asks), pkgref.Ref.CompareSpelled) {
			if r := l.required[child]; l.askExtras(child, fresh.asks[child]) && r != nil {
				r.resetExtras()
				queue = append(queue, task{child, l.edges.byPackage[child].List})
			}
		}
	}
	return nil
}

// edgesFrom are the edges that a project's releases give, as they stand, and that
// there are not yet; mu is held.
func (l *Ledger) edgesFrom(from task) (*edgeBatch, error) {
	b := &edgeBatch{l: l, most: l.limits.Edges, known: map[policy.Edge]bool{}, asks: map[pkgref.Ref]string{}}
	r := l.required[from.project]
	if r == nil {
		return b, nil
	}
	b.many = r.hasMany()
	j, err := l.rules.Judge(from.project, l.origins[from.project], from.edges)
	if err != nil {
		return nil, err
	}
	made := map[string]string{}
	for _, version := range slices.Backward(r.versions) { // pages often have the newest last
		parent := from.project
		parent.Version = version
		before, known := r.made[version]
		if before != "" {
			continue
		}
		now, met := l.reachRelease(parent, j)
		if !met || known && now == "" {
			continue
		}
		if err := b.takeRequirements(parent, now, r.requirementsOf(version)); err != nil {
			return nil, err
		}
		made[version] = now
	}
	maps.Copy(r.made, made)
	return b, nil
}

// edgeBatch collects new edges within a run's limit.
type edgeBatch struct {
	l     *Ledger
	most  int
	many  bool
	edges []policy.Edge
	known map[policy.Edge]bool  // keys
	asks  map[pkgref.Ref]string // extras of projects, with commas between
}

// takeRequirements takes what a release requires. Of pages and lockfiles, equal requirements of many
// releases are one edge, whoever has it first. An edge that only explains a
// refusal is left out when there are many; one that admits is never left out.
func (b *edgeBatch) takeRequirements(parent pkgref.Ref, through string, reqs []door.Requirement) error {
	for _, q := range reqs {
		e := policy.Edge{Parent: parent, Through: through, Name: q.Name, Specifier: q.Specifier, Optional: q.Optional}
		if !b.l.counts(parent.Project(), q) {
			e.Through, e.Unasked = "", q.Under
		}
		if child := (pkgref.Ref{Ecosystem: parent.Ecosystem, Name: q.Name}); e.Through != "" && q.Asks != "" {
			b.asks[child] += "," + q.Asks
		}
		key := e
		if b.many {
			if q.Name == parent.Name {
				continue
			}
			key.Parent = pkgref.Ref{Ecosystem: parent.Ecosystem}
		}
		if b.l.edges.known[key] || b.known[key] {
			continue
		}
		switch total := len(b.l.edges.known) + len(b.known); {
		case b.many && e.Through == "" && total >= b.most/2:
			continue
		case total >= b.most:
			return fault.New(fault.ErrForbidden, "this run's packages require more than %d packages, so no more are taken", b.most)
		}
		b.known[key] = true
		b.edges = append(b.edges, e)
	}
	return nil
}

// reachRelease tells through what a release admits what it requires, "" if it admits
// nothing, and asks again where a new edge may have changed that. met tells whether
// the run was told of the release at all. mu is held.
func (l *Ledger) reachRelease(ref pkgref.Ref, j *policy.Judge) (through string, met bool) {
	s := l.releases.Of(ref)
	if s.State == Unknown || s.Admits() != "" {
		return s.Admits(), s.State != Unknown
	}
	release := j.Release(ref.Version)
	d := release
	switch {
	case s.Facts != nil:
		d = j.File(*s.Facts)
	case s.Listed, s.State == Admitted:
	default:
		return "", true // nothing of it was weighed
	}
	if !d.Allowed() || d.Through == "" {
		return "", true
	}
	_, after := l.releases.Move(ref, Event{Kind: Allowed, Through: d.Through, File: s.File, Facts: s.Facts, ByEdge: ByEdge(release)})
	return after.Admits(), true
}

// ByEdge tells that what a release is admitted through is not an entry of its own.
func ByEdge(release policy.Decision) bool {
	return release.ResolvedBy == policy.ByDependency || release.Through != "" && release.Through != release.Rule
}
