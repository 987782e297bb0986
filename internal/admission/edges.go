package admission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// edgeSet holds what verified metadata of admitted releases requires. The
// slice of a package is replaced, never changed, so that whoever took it may
// read it without the lock.
type edgeSet struct {
	byPackage map[pkgref.Ref]packageEdges
	known     map[policy.Edge]bool // keys of a batch
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

func (s edgeSet) add(b *batch) {
	maps.Copy(s.known, b.known)
	fresh := map[pkgref.Ref][]policy.Edge{}
	for _, e := range b.edges {
		p := pkgref.Ref{Ecosystem: e.Parent.Ecosystem, Name: e.Name}
		fresh[p] = append(fresh[p], e)
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
		cmp.Compare(a.Specifier, b.Specifier), cmp.Compare(a.Through, b.Through), cmp.Compare(a.Unasked, b.Unasked),
	)
}

func epochOf(edges []policy.Edge) string {
	h := sha256.New()
	for _, e := range edges {
		for _, field := range []string{e.Parent.Name, e.Parent.Version, e.Specifier, e.Through, e.Unasked, "\n"} {
			h.Write([]byte(field))
			h.Write([]byte{0})
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Edges implements Door. The parent must be a release that was admitted in this
// run, or that waits for a person: what its metadata requires counts through the
// entry that admitted it, and only tells who wants what while it waits.
func (c *Controller) Edges(ctx context.Context, sandbox string, parent pkgref.Ref, reqs []door.Requirement) error {
	t, err := c.admit(ctx, sandbox)
	if err != nil {
		return err
	}
	if len(reqs) > c.config.Limits.EdgesPerParent {
		return fault.Invalid("%s requires %d packages; at most %d are taken", parent, len(reqs), c.config.Limits.EdgesPerParent)
	}
	kept := make([]door.Requirement, 0, len(reqs))
	for _, q := range reqs {
		keep, err := takesRequirement(parent, q.Name, q.Specifier)
		if err != nil {
			return err
		}
		if keep && len(q.Under) <= maxExtrasText && len(q.Asks) <= maxExtrasText {
			kept = append(kept, q)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.releases.Of(parent).State; s == ledger.Unknown || s == ledger.Refused {
		return fault.New(fault.ErrForbidden, "%s was not admitted in this run, so what it requires is not taken", parent)
	}
	if err := t.setRelease(parent, kept, c.config.Limits.Requirements); err != nil {
		return err
	}
	return c.spread(t, projectOfRef(parent))
}

// EdgesOfIndex implements Door.
func (c *Controller) EdgesOfIndex(ctx context.Context, sandbox string, project pkgref.Ref, indexDigest string, reqs []door.IndexRequirement) error {
	t, err := c.admit(ctx, sandbox)
	if err != nil {
		return err
	}
	kept := make([]door.IndexRequirement, 0, len(reqs))
	telling := c.telling(t, project.Ecosystem)
	for _, q := range reqs {
		keep, err := takesRequirement(project, q.Name, q.Specifier)
		if err != nil {
			return err
		}
		if keep && telling(q.Name, q.Specifier) {
			kept = append(kept, q)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	page := t.releases.Page(project)
	if page == nil || page.Digest() != indexDigest {
		return fault.New(fault.ErrForbidden, "this page of %s was not judged in this run, so what its releases require is not taken", project)
	}
	if err := t.setPage(project, page.Epoch(), kept, c.config.Limits.Requirements); err != nil {
		return err
	}
	return c.spread(t, project)
}

// maxSpecifier is the longest specifier that is read, in bytes, and maxExtrasText are
// the longest names of extras. What is longer admits nothing.
const (
	maxSpecifier  = 512
	maxExtrasText = 4 << 10
)

func takesRequirement(parent pkgref.Ref, name, specifier string) (bool, error) {
	if !pkgref.IsCanonicalName(parent.Ecosystem, name) {
		return false, fault.Invalid("%s requires %q, which is no package", parent, clip(name, 80))
	}
	return len(specifier) <= maxSpecifier, nil
}
