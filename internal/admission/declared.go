package admission

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// require puts into a subject what this run knows of who requires it.
func (t *tenant) require(about *policy.Subject, p pkgref.Ref) {
	about.Edges = t.edgesTo(p).edges
	about.Declared = t.declares(p)
}

// declares tells whether a release that this run admitted, through an entry or through
// none, requires a project. What was only shown declares nothing: anybody can publish a
// requirement.
func (t *tenant) declares(p pkgref.Ref) bool {
	p.Version = ""
	t.mu.Lock()
	defer t.mu.Unlock()
	looked := map[pkgref.Ref]bool{}
	for _, e := range t.edges.byPackage[p].edges {
		parent := projectOfRef(e.Parent)
		if looked[parent] || parent == p {
			continue
		}
		looked[parent] = true
		if t.admittedRequires(parent, p.Name) {
			return true
		}
	}
	return false
}

// admittedRequires looks through a project's releases; t.mu is held.
func (t *tenant) admittedRequires(parent pkgref.Ref, name string) bool {
	r := t.required[parent]
	if r == nil {
		return false
	}
	for _, version := range slices.Backward(r.versions) { // pages often have the newest last
		parent.Version = version
		if t.releases.Of(parent).State == ledger.Admitted && r.requires(version, name) {
			return true
		}
	}
	return false
}

// requires tells whether a release requires a name in some version.
func (r *requirements) requires(version, name string) bool {
	of := func(q door.Requirement) bool { return q.Name == name }
	return slices.ContainsFunc(r.own[version], of) ||
		slices.ContainsFunc(r.places[version], func(place int) bool { return of(r.list[place]) })
}

// telling tells which requirements of a page a run keeps. Where the policy lets in what
// no list names, few change anything: those that take a pre-release, and those of a name
// that would be refused for its likeness to another.
func (c *Controller) telling(t *tenant, e pkgref.Ecosystem) func(name, specifier string) bool {
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
			about, err := c.subject(t, pkgref.Ref{Ecosystem: e, Name: name}, origin{})
			near = err == nil && about.Lookalike != nil
			alike[name] = near
		}
		return near
	}
}
