package admission

import (
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// told moves a release by what was said of a file of it, or of its metadata, and
// follows what that opens or closes.
func (c *Controller) told(t *tenant, ask door.ArtifactAsk, w weighed) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.origins[projectOfRef(ask.Package)] = origin{ask.Upstream, ask.Toolchain}
	if ask.Package.Version == "" {
		return nil // a query: the release that it leads to is asked about next
	}
	return c.move(t, ask.Package, c.event(ask, w))
}

// event is what an answer says of a release. Metadata opens what the release's own
// file would open, by all that looks at a file: that its name may be read admits
// nothing.
func (c *Controller) event(ask door.ArtifactAsk, w weighed) ledger.Event {
	facts, said := ask.Facts(), w.said
	if ask.File.Kind == policy.KindMetadata {
		switch {
		case !w.decision.Shown():
			return ledger.Event{Kind: ledger.Denied}
		case ask.Release == nil:
			return ledger.Event{Kind: ledger.Read}
		}
		facts = ask.Release.Facts()
		said = w.judge.File(facts)
	}
	e := ledger.Event{Kind: ledger.Denied, File: facts.File, Facts: &facts}
	switch c.settle(said).Effect {
	case policy.Allow:
		e.Kind, e.Through, e.ByEdge = ledger.Allowed, said.Through, byEdge(w.judge.Release(ask.Package.Version))
	case policy.Hold:
		e.Kind = ledger.Waits
	case policy.Deny:
		if ask.File.Kind == policy.KindMetadata {
			e.Kind = ledger.Read
		}
	}
	return e
}

// byEdge tells that what a release is admitted through is not an entry of its own.
func byEdge(release policy.Decision) bool {
	return release.ResolvedBy == policy.ByDependency || release.Through != "" && release.Through != release.Rule
}

// move moves a release. What it requires is followed once it is admitted through an
// entry; once it is not any more, all that was admitted for being required has to be
// reached anew. t.mu is held.
func (c *Controller) move(t *tenant, ref pkgref.Ref, e ledger.Event) error {
	before, after := t.releases.Move(ref, e)
	project := projectOfRef(ref)
	if r := t.required[project]; r == nil || !r.met[ref.Version] {
		return nil // nothing rests on it
	}
	switch {
	case before.Admits() != "" && after.Admits() == "":
		return c.respread(t)
	case before.Admits() == "" && after.Admits() != "":
		return c.spread(t, project)
	}
	return nil
}

// respread makes all edges anew. It is rare, and takes as long as all requirements
// did: a release was let in and then was not. If it fails there are fewer edges than
// there could be, and never more. t.mu is held.
func (c *Controller) respread(t *tenant) error {
	t.releases.Loosen()
	t.edges, t.extras = newEdgeSet(), extras{}
	for _, r := range t.required {
		r.made = map[string]string{}
	}
	for _, project := range slices.SortedFunc(maps.Keys(t.required), compareRefs) {
		if err := c.spread(t, project); err != nil {
			return err
		}
	}
	return nil
}

// reach tells through what a release admits what it requires, "" if it admits
// nothing, and asks again where a new edge may have changed that. met tells whether
// the run was told of the release at all. t.mu is held.
func (c *Controller) reach(t *tenant, ref pkgref.Ref, j *policy.Judge) (through string, met bool) {
	s := t.releases.Of(ref)
	if s.State == ledger.Unknown || s.Admits() != "" {
		return s.Admits(), s.State != ledger.Unknown
	}
	release := j.Release(ref.Version)
	d := release
	switch {
	case s.Facts != nil:
		d = j.File(*s.Facts)
	case s.Listed, s.State == ledger.Admitted:
	default:
		return "", true // nothing of it was weighed
	}
	if !d.Allowed() || d.Through == "" {
		return "", true
	}
	_, after := t.releases.Move(ref, ledger.Event{Kind: ledger.Allowed, Through: d.Through, File: s.File, Facts: s.Facts, ByEdge: byEdge(release)})
	return after.Admits(), true
}

// had takes from a `served` record that a release was let in; t.mu is held.
func (t *tenant) had(r audit.Record) {
	through := r.Detail[detailThrough]
	t.releases.Move(refOf(r), ledger.Event{
		Kind: ledger.Allowed, Through: through, File: r.File,
		ByEdge: r.ResolvedBy == string(policy.ByDependency) || through != "" && through != r.Rule && r.ResolvedBy == string(policy.ByAllowlist),
	})
}
