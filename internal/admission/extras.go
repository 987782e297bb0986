package admission

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// extras are those of projects that admitted releases ask for. The tenant's mu guards
// them. What an entry of the policy names, or a lockfile pins, is not in them.
type extras map[pkgref.Ref]map[string]bool

// counts tells whether a requirement of a project's releases is one of this run: no
// extra brings it, something asks for one that does, or whoever gave a lockfile that
// pins what it requires did. t.mu is held.
func (t *tenant) counts(project pkgref.Ref, q door.Requirement) bool {
	if q.Under == "" {
		return true
	}
	for extra := range strings.SplitSeq(q.Under, ",") {
		if t.extras[project][extra] {
			return true
		}
	}
	if t.policy().AsksExtra(project, q.Under) {
		return true
	}
	return t.run.Lock != nil && len(t.run.Lock.For(pkgref.Ref{Ecosystem: project.Ecosystem, Name: q.Name}).Pins) > 0
}

// ask notes that extras of a project are asked for, given with commas between, and
// whether that is new. What its releases require for them is then to be made edges of.
// t.mu is held.
func (t *tenant) ask(project pkgref.Ref, asked string) (news bool) {
	for extra := range strings.SplitSeq(asked, ",") {
		known := t.extras[project]
		if extra == "" || known[extra] || len(known) >= pkgref.MaxExtras {
			continue
		}
		if known == nil {
			known = map[string]bool{}
			t.extras[project] = known
		}
		known[extra], news = true, true
	}
	return news
}

// anew has edges made again of the releases that require something for an extra.
func (r *requirements) anew() {
	under := func(q door.Requirement) bool { return q.Under != "" }
	for version, own := range r.own {
		if slices.ContainsFunc(own, under) {
			delete(r.made, version)
		}
	}
}

// extrasOf names the extras by which nothing but they brings a package: "rich[jupyter]",
// with spaces between; "" if something else does.
func extrasOf(edges []policy.Edge) string {
	var names []string
	for _, e := range edges[:min(len(edges), 3)] {
		if e.Unasked == "" {
			return ""
		}
		extra, _, _ := strings.Cut(e.Unasked, ",")
		if name := e.Parent.Name + "[" + extra + "]"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
