package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Edges implements Door. The parent must be a release that was admitted in this
// run, or that waits for a person: what its metadata requires counts through the
// entry that admitted it, and only tells who wants what while it waits.
func (c *Controller) Edges(ctx context.Context, sandbox string, parent pkgref.Ref, reqs []door.Requirement) error {
	t, err := c.admitTenant(ctx, sandbox)
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
	return t.ledger.Require(parent, kept)
}

// EdgesOfIndex implements Door.
func (c *Controller) EdgesOfIndex(ctx context.Context, sandbox string, project pkgref.Ref, indexDigest string, reqs []door.IndexRequirement) error {
	t, err := c.admitTenant(ctx, sandbox)
	if err != nil {
		return err
	}
	kept := make([]door.IndexRequirement, 0, len(reqs))
	telling := t.telling(project.Ecosystem)
	for _, q := range reqs {
		keep, err := takesRequirement(project, q.Name, q.Specifier)
		if err != nil {
			return err
		}
		if keep && telling(q.Name, q.Specifier) {
			kept = append(kept, q)
		}
	}
	return t.ledger.RequirePage(project, indexDigest, kept)
}

// maxExtrasText are the longest names of extras, in bytes. A longer list admits nothing.
const maxExtrasText = 4 << 10

func takesRequirement(parent pkgref.Ref, name, specifier string) (bool, error) {
	if !pkgref.IsCanonicalName(parent.Ecosystem, name) {
		return false, fault.Invalid("%s requires %q, which is not a package name", parent, redact.Cut(name, 80))
	}
	return len(specifier) <= ledger.MaxSpecifier, nil
}

// telling tells which requirements of a page a run keeps. Where the policy lets in what
// no list names, few change anything: those that take a pre-release, and those of a name
// that would be refused for its likeness to another.
func (t *tenant) telling(e pkgref.Ecosystem) func(name, specifier string) bool {
	if t.run.Plan || t.policy().UsesEdges(e) {
		return func(string, string) bool { return true }
	}
	alike := map[string]bool{}
	return func(name, specifier string) bool {
		if pkgref.MayTakePreReleases(e, specifier) {
			return true
		}
		near, known := alike[name]
		if !known {
			about, err := t.known.subject(pkgref.Ref{Ecosystem: e, Name: name}, ledger.Origin{})
			near = err == nil && about.Lookalike != nil
			alike[name] = near
		}
		return near
	}
}
