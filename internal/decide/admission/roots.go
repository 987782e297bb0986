package admission

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Root is a package that a run asked for, and that its policy kept from being
// installed, or would have if it did not only observe: the package itself was refused, or
// something that it requires.
type Root struct {
	Package pkgref.Ref // with the version that was served, or else that the client chose; "": it got to none
	Asked   string     // the word of a command that asked for it, with what that says of versions; "": none is known
	Extras  []string   // of it that are wanted
	Had     bool       // a file of it was served
}

// Roots says from the log what a run asked for and was not let have, so that a policy can be
// made of which the same install succeeds. Required are refused packages that only a root's
// requirements ask for, each with these roots. Both are of what was refused for want of an entry.
// Of what was refused for something else, Lines has the entries that a decision suggests, and Stays
// a sentence for each refusal that no entry lifts, or nobody should be led to add one for: see
// policy.Decision.
type Roots struct {
	Template string // of the run's first sandbox
	Roots    []Root
	Required []policy.Wanted
	// Asking are packages of which only an extra brings what was refused.
	Asking []policy.Wanted
	Lines  []policy.Wanted
	Stays  []string
}

// Add takes the roots of another run of the same packages.
func (r *Roots) Add(other Roots) {
	for _, root := range other.Roots {
		if !slices.ContainsFunc(r.Roots, func(have Root) bool { return have.Package.Project() == root.Package.Project() }) {
			r.Roots = append(r.Roots, root)
		}
	}
	r.Required, r.Asking, r.Lines = append(r.Required, other.Required...), append(r.Asking, other.Asking...), append(r.Lines, other.Lines...)
}

// Roots finds a run's roots.
func (c *Controller) Roots(ctx context.Context, run string) (Roots, error) {
	sum, err := c.Summary(ctx, run)
	if err != nil {
		return Roots{}, err
	}
	s := rootsSearch{clients: c.config.Clients, parents: map[pkgref.Ref][]pkgref.Ref{}, served: map[pkgref.Ref]pkgref.Version{}, extras: map[pkgref.Ref][]string{}}
	for r, err := range c.config.Log.Records(ctx, audit.Filter{Run: run}) {
		if err != nil {
			return Roots{}, err
		}
		s.takeRecord(r)
	}
	return s.findRoots(slices.Concat(sum.Refused, sum.Would)), nil
}

// rootsSearch is what a run's records say of who wanted what.
type rootsSearch struct {
	template string
	parents  map[pkgref.Ref][]pkgref.Ref   // of refused projects
	served   map[pkgref.Ref]pkgref.Version // projects, with the highest version
	extras   map[pkgref.Ref][]string       // by which alone refused projects come: "rich[jupyter]"
	clients  claims.Clients                // whose commands name packages
	asked    []askedWord
}

func (s *rootsSearch) takeRecord(r audit.Record) {
	switch {
	case r.Kind == audit.KindSandbox && s.template == "":
		s.template = r.Detail["template"]
	case r.Kind == audit.KindCommand && r.Outcome == audit.Started:
		s.asked = append(s.asked, askedWords(s.clients, r.Command)...)
	case r.Kind == audit.KindPackage && r.Outcome == audit.Served:
		p := records.ProjectOf(r)
		v, _ := pkgref.ParseVersion(p.Ecosystem, r.InstalledVersion)
		if best, known := s.served[p]; !known || v.Compare(best) > 0 {
			s.served[p] = v
		}
	case r.Kind == audit.KindPackage:
		p := records.ProjectOf(r)
		s.extras[p] = strings.Fields(r.Detail[records.DetailExtras])
		for name := range strings.FieldsSeq(r.Detail[records.DetailParents]) {
			if parent := (pkgref.Ref{Ecosystem: p.Ecosystem, Name: name}); parent != p && !slices.Contains(s.parents[p], parent) {
				s.parents[p] = append(s.parents[p], parent)
			}
		}
	}
}

// findRoots turns refusals into the roots that they go back to.
func (s *rootsSearch) findRoots(refused []Line) Roots {
	out := Roots{Template: s.template}
	for _, p := range refused {
		ref := pkgref.Ref{Ecosystem: pkgref.Ecosystem(p.Ecosystem), Name: p.Name}
		switch {
		case p.Suggest == "":
			out.Stays = append(out.Stays, refusedLine(p)+"; no line of a policy that could be suggested allows it")
			continue
		case p.Name == "" || !policy.AreEntries(p.Suggest):
			out.Stays = append(out.Stays, refusedLine(p)+"; the lines that allow it hold for more than this, so add them by hand: cofferdam why "+p.RequestID)
			continue
		case p.Rule != ruleDefault:
			out.Lines = append(out.Lines, policy.Wanted{Package: ref, Lines: p.Suggest})
			continue
		}
		tops := s.findTops(ref)
		if p.File != "" { // of a page the last version says nothing of what was wanted
			ref.Version = p.Version
		}
		if len(tops) == 0 || s.named(ref.Project()) {
			out.Roots = s.addRoot(out.Roots, ref)
			continue
		}
		asking := s.asking(ref)
		for _, w := range asking {
			tops = append(tops, w.Package)
		}
		out.Asking = append(out.Asking, asking...)
		out.Required = append(out.Required, policy.Wanted{Package: ref, Through: tops})
		for _, top := range tops {
			out.Roots = s.addRoot(out.Roots, top)
		}
	}
	return out
}

// named tells of a refused project that only extras bring which nothing is known to ask for that a command named it: then
// that is why it was wanted. Most releases have an extra for their own tests, with half of what is popular in it.
func (s *rootsSearch) named(project pkgref.Ref) bool {
	return len(s.extras[project]) > 0 && s.wordFor(project) != ""
}

// ruleDefault is policy's rule of what no list names.
const ruleDefault = "packages.default"

// refusedLine is a refusal in a sentence.
func refusedLine(p Line) string {
	ref := pkgref.Ref{Ecosystem: pkgref.Ecosystem(p.Ecosystem), Name: p.Name, Version: p.Version}
	if p.Name == "" {
		return p.File + ": " + p.Reason
	}
	return ref.String() + ": " + p.Reason
}

// findTops finds the projects that a refused one is wanted by in the end; none: by nobody.
func (s *rootsSearch) findTops(p pkgref.Ref) []pkgref.Ref {
	var tops []pkgref.Ref
	seen := map[pkgref.Ref]bool{p: true}
	for left := slices.Clone(s.parents[p]); len(left) > 0; left = left[1:] {
		q := left[0]
		if seen[q] {
			continue
		}
		seen[q] = true
		if len(s.parents[q]) == 0 {
			tops = append(tops, q)
		}
		left = append(left, s.parents[q]...)
	}
	return tops
}

// asking are the packages of which only an extra brings a refused one, with one that
// does. The packages that a command named are better known from there.
func (s *rootsSearch) asking(p pkgref.Ref) (tops []policy.Wanted) {
	for _, spelt := range s.extras[p.Project()] {
		name, extras, ok := pkgref.CutExtras(spelt)
		parent := pkgref.Ref{Ecosystem: p.Ecosystem, Name: name}
		if !ok || len(askedExtras(s.wordFor(parent))) > 0 {
			continue
		}
		if v, served := s.served[parent]; served {
			parent.Version = v.String()
		}
		tops = append(tops, policy.Wanted{Package: parent, WithDependencies: true, Extras: extras})
	}
	return tops
}

// addRoot adds a root, or what is known of it now.
func (s *rootsSearch) addRoot(roots []Root, p pkgref.Ref) []Root {
	project := p.Project()
	i := slices.IndexFunc(roots, func(r Root) bool { return r.Package.Project() == project })
	if i < 0 {
		root := Root{Package: p, Asked: s.wordFor(project)}
		root.Extras = askedExtras(root.Asked)
		if v, served := s.served[project]; served {
			root.Had, root.Package.Version = true, v.String()
		}
		return append(roots, root)
	}
	have := &roots[i]
	if !have.Had && pkgref.Compare(p.Ecosystem, p.Version, have.Package.Version) > 0 && p.Version != "" {
		have.Package.Version = p.Version
	}
	return roots
}

// wordFor is the last word of a command that asked for a project.
func (s *rootsSearch) wordFor(project pkgref.Ref) string {
	for _, a := range slices.Backward(s.asked) {
		below := a.project.Ecosystem == project.Ecosystem && project.Ecosystem.Traits().NamesArePaths && strings.HasPrefix(a.project.Name, project.Name+"/")
		if a.project == project || below {
			return a.word
		}
	}
	return ""
}

// askedWord is a word of an install command that names a package.
type askedWord struct {
	project pkgref.Ref // where names are paths, of what may lie below the project itself
	word    string
}

// askedWords finds the packages that a command names, with or without a version, also
// inside `sh -c`. It is what the agent says.
func askedWords(clients claims.Clients, argv []string) []askedWord {
	var found []askedWord
	for ecosystem, word := range clients.Words(argv) {
		if name := askedName(ecosystem, word); name != "" && len(word) <= 512 {
			if p, err := pkgref.New(ecosystem, name, ""); err == nil {
				found = append(found, askedWord{p, word})
			}
		}
	}
	return found
}

// askedExtras are the extras in a word such as requests[socks]>=2.
func askedExtras(word string) []string {
	before, _, found := strings.Cut(word, "]")
	if !found {
		return nil
	}
	_, extras, _ := pkgref.CutExtras(before + "]")
	return extras
}

// askedName is the name in a word such as requests[socks]>=2, @scope/name@1, path@latest;
// "" if the word is none.
func askedName(ecosystem pkgref.Ecosystem, word string) string {
	if word == "" || word[0] == '-' || word[0] == '.' || word[0] == '/' || strings.Contains(word, "://") {
		return ""
	}
	if ecosystem.Traits().Between == "" {
		name, _, _ := strings.Cut(word, "[")
		if i := strings.IndexAny(name, "=<>!~;@ "); i >= 0 {
			name = name[:i]
		}
		return name
	}
	if at := strings.LastIndex(word, ecosystem.Traits().Between); at > 0 {
		return word[:at]
	}
	return word
}
