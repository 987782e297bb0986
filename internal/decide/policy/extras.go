package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// AsksExtra tells whether entries of the allowlist name one of a project's extras, given
// with commas between. Where policies narrow each other, all that have entries of the
// project must.
func (p *Policy) AsksExtra(project pkgref.Ref, extras string) bool {
	asks := false
	for _, l := range p.layers() {
		entries := l.packages.allowed[packageKey{project.Ecosystem, project.Name}]
		if len(entries) == 0 {
			continue
		}
		if !slices.ContainsFunc(entries, func(e listEntry) bool { return e.asksOne(extras) }) {
			return false
		}
		asks = true
	}
	return asks
}

func (e listEntry) asksOne(extras string) bool {
	for extra := range strings.SplitSeq(extras, ",") {
		if slices.Contains(e.extras, extra) {
			return true
		}
	}
	return false
}

// extrasText is "its extra a", or "its extras a, b".
func extrasText(extras []string) string {
	if len(extras) == 1 {
		return "its extra " + plainASCII(extras[0], 40)
	}
	return "its extras " + plainASCII(strings.Join(extras, ", "), 80)
}

// unasked is an edge that tells what nothing asks for: only an extra brings the
// package, where nothing brings it otherwise; nil: something does, or nobody wants it.
func unasked(wanted []*judgedEdge) *judgedEdge {
	var found *judgedEdge
	for _, e := range wanted {
		switch {
		case e.edge.Unasked == "":
			return nil
		case found == nil:
			found = e
		}
	}
	return found
}

// requires is how a refusal tells who requires a package.
func requires(wanted []*judgedEdge) string {
	e := unasked(wanted)
	if e == nil {
		i := max(0, slices.IndexFunc(wanted, func(e *judgedEdge) bool { return e.edge.Unasked == "" }))
		return shortName(wanted[i].edge.Parent.Name) + " requires it"
	}
	extra, more, _ := strings.Cut(e.edge.Unasked, ",")
	if more != "" {
		extra += " or others"
	}
	return shortName(e.edge.Parent.Name) + " requires it for its extra " + plainASCII(extra, 40) + ", which nothing asks for"
}

// wanting is what to suggest where nothing but an extra brings a package: an entry of
// the one whose extra it is, in the versions in which that is admitted.
func (j *Judge) wanting(wanted []*judgedEdge) (suggestion, bool) {
	e := unasked(wanted)
	if e == nil {
		return suggestion{}, false
	}
	extra, _, _ := strings.Cut(e.edge.Unasked, ",")
	return j.policy.withExtras(e.edge.Parent, []string{extra})
}

// withExtras is an entry that asks for a release's extras beside what admits it now.
func (p *Policy) withExtras(ref pkgref.Ref, extras []string) (suggestion, bool) {
	r, ok := pkgref.ParseVersion(ref.Ecosystem, ref.Version)
	s := suggestion{ecosystem: ref.Ecosystem, name: ref.Name}
	if ok {
		s = addition(ref.Ecosystem, ref.Name, r)
	}
	for _, e := range p.packages.allowed[packageKey{ref.Ecosystem, ref.Name}] {
		if ref.Version == "" || ok && e.admits(r) {
			s.limit, s.version, s.prereleases, s.installScripts = e.limitText, e.versionText, e.prereleases, e.installScripts
			break
		}
	}
	s.withDependencies, s.extras = true, extras
	return s, ref.Ecosystem.Traits().Extras
}
