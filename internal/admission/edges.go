package admission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// edgeSet holds what verified metadata of admitted releases requires. The
// slice of a package is replaced, never changed, so that whoever took it may
// read it without the lock.
type edgeSet struct {
	byPackage map[pkgref.Ref]packageEdges
	known     map[policy.Edge]bool
}

// packageEdges are the edges to one package, sorted, and the name of that set:
// two runs with the same facts have the same epoch.
type packageEdges struct {
	edges []policy.Edge
	epoch string
}

func newEdgeSet() edgeSet {
	return edgeSet{byPackage: map[pkgref.Ref]packageEdges{}, known: map[policy.Edge]bool{}}
}

// add adds what is new.
func (s edgeSet) add(edges []policy.Edge) {
	fresh := map[pkgref.Ref][]policy.Edge{}
	for _, e := range edges {
		if !s.known[e] {
			s.known[e] = true
			p := pkgref.Ref{Ecosystem: e.Parent.Ecosystem, Name: e.Name}
			fresh[p] = append(fresh[p], e)
		}
	}
	for p, more := range fresh {
		all := slices.Concat(s.byPackage[p].edges, more)
		slices.SortFunc(all, compareEdges)
		s.byPackage[p] = packageEdges{edges: all, epoch: epochOf(all)}
	}
}

func compareEdges(a, b policy.Edge) int {
	return cmp.Or(
		cmp.Compare(a.Parent.Name, b.Parent.Name), cmp.Compare(a.Parent.Version, b.Parent.Version),
		cmp.Compare(a.Specifier, b.Specifier), cmp.Compare(a.Through, b.Through),
	)
}

func epochOf(edges []policy.Edge) string {
	h := sha256.New()
	for _, e := range edges {
		for _, field := range []string{e.Parent.Name, e.Parent.Version, e.Specifier, e.Through, "\n"} {
			h.Write([]byte(field))
			h.Write([]byte{0})
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Edges implements Door. The parent must be a release that was admitted in this
// run: what its metadata requires counts through the entry that admitted it.
func (c *Controller) Edges(ctx context.Context, sandbox string, parent pkgref.Ref, reqs []Requirement) error {
	t, err := c.admit(ctx, sandbox)
	if err != nil {
		return err
	}
	if len(reqs) > c.config.Limits.EdgesPerParent {
		return fault.Invalid("%s requires %d packages; at most %d are taken", parent, len(reqs), c.config.Limits.EdgesPerParent)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	through, admitted := t.admittedThrough(parent)
	if !admitted {
		return fault.New(fault.ErrForbidden, "%s was not admitted in this run, so what it requires is not taken", parent)
	}
	edges := make([]policy.Edge, 0, len(reqs))
	fresh := 0
	for _, q := range reqs {
		if !pkgref.IsCanonicalName(parent.Ecosystem, q.Name) || len(q.Specifier) > 512 {
			return fault.Invalid("%s requires %q, which is no package", parent, clip(q.Name, 80))
		}
		e := policy.Edge{Parent: parent, Through: through, Name: q.Name, Specifier: q.Specifier}
		if !t.edges.known[e] {
			fresh++
		}
		edges = append(edges, e)
	}
	if len(t.edges.known)+fresh > c.config.Limits.Edges {
		return fault.New(fault.ErrForbidden, "this run's packages require more than %d packages, so no more are taken", c.config.Limits.Edges)
	}
	t.edges.add(edges)
	return nil
}

// admittedThrough tells whether a release was admitted, and through what; the
// tenant's mu is held.
func (t *tenant) admittedThrough(p pkgref.Ref) (string, bool) {
	if through, ok := t.through[p]; ok {
		return through, true
	}
	project := p
	project.Version = ""
	if v := t.indexes[project]; v != nil {
		through, ok := v.through[p.Version]
		return through, ok
	}
	return "", false
}
