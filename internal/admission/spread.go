package admission

import (
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// task is a project to look at because it has new requirements (edges are all
// that lead to it) or because edges that lead to it are new.
type task struct {
	project pkgref.Ref
	edges   []policy.Edge
}

// spread makes edges of what admitted releases of a project require. That can
// admit releases whose requirements came earlier, as clients read a page or a
// go.mod once; so it goes on with these. t.mu is held.
func (c *Controller) spread(t *tenant, project pkgref.Ref) error {
	queue := []task{{project, t.edges.byPackage[project].edges}}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		fresh, err := c.edgesFrom(t, next)
		if err != nil {
			return err
		}
		t.edges.add(fresh)
		more := map[pkgref.Ref][]policy.Edge{}
		var order []pkgref.Ref
		for _, e := range fresh.edges {
			child := pkgref.Ref{Ecosystem: e.Parent.Ecosystem, Name: e.Name}
			if e.Through == "" || t.required[child] == nil {
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
		for _, child := range slices.SortedFunc(maps.Keys(fresh.asks), compareRefs) {
			if r := t.required[child]; t.ask(child, fresh.asks[child]) && r != nil {
				r.anew()
				queue = append(queue, task{child, t.edges.byPackage[child].edges})
			}
		}
	}
	return nil
}

// edgesFrom are the edges that a project's releases give, as they stand, and that
// there are not yet; t.mu is held.
func (c *Controller) edgesFrom(t *tenant, from task) (*batch, error) {
	b := &batch{t: t, most: c.config.Limits.Edges, known: map[policy.Edge]bool{}, asks: map[pkgref.Ref]string{}}
	r := t.required[from.project]
	if r == nil {
		return b, nil
	}
	b.many = r.many()
	about, err := c.subject(t, from.project, t.origins[from.project])
	if err != nil {
		return nil, err
	}
	about.Edges = from.edges
	j := c.judgeOf(t.policy(), about)
	made := map[string]string{}
	for _, version := range slices.Backward(r.versions) { // pages often have the newest last
		parent := from.project
		parent.Version = version
		before, known := r.made[version]
		if before != "" {
			continue
		}
		now, met := c.reach(t, parent, j)
		if !met || known && now == "" {
			continue
		}
		if err := b.take(parent, now, r.of(version)); err != nil {
			return nil, err
		}
		made[version] = now
	}
	maps.Copy(r.made, made)
	return b, nil
}

// batch collects new edges within a run's limit.
type batch struct {
	t     *tenant
	most  int
	many  bool
	edges []policy.Edge
	known map[policy.Edge]bool  // keys
	asks  map[pkgref.Ref]string // extras of projects, with commas between
}

// take takes what a release requires. Of pages and lockfiles, equal requirements of many
// releases are one edge, whoever has it first. An edge that only explains a
// refusal is left out when there are many; one that admits is never left out.
func (b *batch) take(parent pkgref.Ref, through string, reqs []door.Requirement) error {
	for _, q := range reqs {
		e := policy.Edge{Parent: parent, Through: through, Name: q.Name, Specifier: q.Specifier}
		if !b.t.counts(projectOfRef(parent), q) {
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
		if b.t.edges.known[key] || b.known[key] {
			continue
		}
		switch total := len(b.t.edges.known) + len(b.known); {
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
