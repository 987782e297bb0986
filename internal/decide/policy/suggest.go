package policy

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/linediff"
)

// maxSuggested bounds the packages that one call adds; the rest can be asked
// for again with the document that it gave.
const maxSuggested = 200

// Wanted is a package that a document is to admit.
type Wanted struct {
	Package pkgref.Ref // without a version: in any that is no pre-release
	// WithDependencies: and all that it requires, by the key of that name.
	WithDependencies bool
	// Extras, of a Python package WithDependencies: and what these bring.
	Extras []string
	// Through are packages that require it: where one of them gets an entry with
	// WithDependencies, that admits this one too, and it needs no entry of its own.
	Through []pkgref.Ref
	// Lines, if there are any, are the entries that a Decision suggests (Decision.Suggest): these are added
	// as they are, in place of what would be made of Package.
	Lines string
}

// Suggest is SuggestWanted for packages alone.
func Suggest(document []byte, refused []pkgref.Ref) (newDocument []byte, diff string, err error) {
	wanted := make([]Wanted, len(refused))
	for i, ref := range refused {
		wanted[i].Package = ref
	}
	return SuggestWanted(document, wanted)
}

// SuggestWanted adds allowlist entries to a document until it admits what was refused: a name on no
// list up to the refused major version, a name on the list in the refused minor version too. Only
// lines are added; every comment stays. diff is unified. A release that the document blocks, or
// that has no canonical name and version, is left out; if nothing but that is asked for, that is an
// error. A release that is refused for its kind or age stays refused: those are keys of packages,
// and not this function's to loosen. Wanted.Lines are added as they are.
func SuggestWanted(document []byte, wanted []Wanted) (newDocument []byte, diff string, err error) {
	p, err := Parse("policy", document)
	if err != nil {
		return nil, "", err
	}
	wanted = slices.Clone(wanted)
	slices.SortStableFunc(wanted, rootsFirst)
	g := growth{text: document, policy: p, roots: map[packageKey]bool{}}
	for _, w := range wanted {
		if err := g.takeWanted(w); err != nil {
			return nil, "", err
		}
	}
	if g.added == 0 && len(g.leftOut) > 0 {
		return nil, "", fault.Invalid("no allowlist entry would allow %s: it is blocked, not canonical, under a lockfile, or has an entry with the same versions that differs in pre-releases",
			strings.Join(g.leftOut[:min(len(g.leftOut), 5)], ", "))
	}
	return g.text, linediff.Unified("policy", "policy (suggested)", document, g.text), nil
}

// rootsFirst puts what comes with its dependencies first: others may come with it.
func rootsFirst(a, b Wanted) int {
	if a.WithDependencies != b.WithDependencies {
		if a.WithDependencies {
			return -1
		}
		return 1
	}
	return highestFirst(a.Package, b.Package)
}

func (w Wanted) comesThrough(roots map[packageKey]bool) bool {
	return slices.ContainsFunc(w.Through, func(p pkgref.Ref) bool { return roots[packageKey{p.Ecosystem, p.Name}] })
}

// highestFirst puts a package's highest version first, whose entry often
// admits the lower ones too.
func highestFirst(a, b pkgref.Ref) int {
	if c := cmp.Or(cmp.Compare(a.Ecosystem, b.Ecosystem), cmp.Compare(a.Name, b.Name)); c != 0 {
		return c
	}
	ra, _ := pkgref.ParseVersion(a.Ecosystem, a.Version)
	rb, _ := pkgref.ParseVersion(b.Ecosystem, b.Version)
	return cmp.Or(rb.Compare(ra), cmp.Compare(a.Version, b.Version))
}

// standing is how a document stands to a package before it is edited.
type standing int

const (
	standsRefused standing = iota // an entry would admit it
	standsAllowed
	standsBeyond // no entry would
)

func (p *Policy) suggestionFor(w Wanted) (suggestion, standing) {
	s, standing := p.entryFor(w.Package)
	if !w.WithDependencies {
		return s, standing
	}
	if standing == standsAllowed {
		s, standing = p.withDependencies(w.Package)
	}
	s.withDependencies = true
	if len(w.Extras) == 0 || standing == standsBeyond {
		return s, standing
	}
	if standing == standsRefused && s.within == 0 {
		s.extras = w.Extras
		return s, standing
	}
	missing := slices.ContainsFunc(w.Extras, func(extra string) bool { return !p.AsksExtra(w.Package, extra) })
	if s, ok := p.withExtras(w.Package, w.Extras); ok && missing {
		return s, standsRefused
	}
	return s, standing
}

// withDependencies is for a package that is allowed: where none of its entries admits
// what it requires, the one that it comes by gets that key.
func (p *Policy) withDependencies(ref pkgref.Ref) (suggestion, standing) {
	r, _ := pkgref.ParseVersion(ref.Ecosystem, ref.Version)
	var by *listEntry
	for _, e := range p.packages.allowed[packageKey{ref.Ecosystem, ref.Name}] {
		switch admits := ref.Version == "" || e.admits(r); {
		case admits && e.withDependencies:
			return suggestion{}, standsAllowed
		case admits:
			by = &e
		}
	}
	if by == nil { // by a default, a lockfile
		return suggestion{}, standsAllowed
	}
	return suggestion{
		ecosystem: ref.Ecosystem, name: ref.Name, limit: by.limitText, version: by.versionText,
		prereleases: by.prereleases, installScripts: by.installScripts, within: by.line, key: keyDependencies,
	}, standsRefused
}

func (p *Policy) entryFor(ref pkgref.Ref) (suggestion, standing) {
	owner, _ := OwnerOf(p.namespaces, ref)
	j := p.Judge(time.Time{}, Subject{Package: ref, Upstream: owner, Assessed: true}) // by its names alone, as of malware
	if ref.Version == "" {
		switch d := j.Name(); {
		case d.Effect == Allow:
			return suggestion{}, standsAllowed
		case d.ResolvedBy == ByDefault:
			return suggestion{ecosystem: ref.Ecosystem, name: ref.Name}, standsRefused
		}
		return suggestion{}, standsBeyond
	}
	if j.always != nil {
		return suggestion{}, standsBeyond
	}
	r, ok := pkgref.ParseVersion(ref.Ecosystem, ref.Version)
	switch d := j.release(ref.Version); {
	case d.Effect == Allow:
		return suggestion{}, standsAllowed
	case !ok || (d.ResolvedBy != ByDefault && d.ResolvedBy != ByAllowlist):
		return suggestion{}, standsBeyond
	case len(j.allowed) > 0:
		return j.widened(r), standsRefused
	}
	return addition(ref.Ecosystem, ref.Name, r), standsRefused
}

// addEntry tries the places where the entry could go, and takes the first
// after which the document means what it meant, and the entry.
func addEntry(document []byte, p *Policy, s suggestion) ([]byte, *Policy, error) {
	root, problems := loadDocument("policy", document)
	if problems != nil {
		return nil, nil, problems
	}
	tries := places(root, s)
	if s.within > 0 {
		tries = widenings(document, root, s)
	}
	for _, e := range tries {
		edited := e.applyTo(document)
		if next, err := Parse("policy", edited); err == nil && next.isWith(p, s) {
			return edited, next, nil
		}
	}
	return nil, nil, fault.Invalid("the document's layout can not be edited by a program; add these lines yourself:\n%s", s.document())
}

// isWith reports whether p is before and the one entry more, or the one key more in
// the entry that s is within.
func (p *Policy) isWith(before *Policy, s suggestion) bool {
	key := packageKey{s.ecosystem, s.name}
	if s.within > 0 {
		return p.meaning() == before.meaning() && len(p.packages.allowed) == len(before.packages.allowed) && p.sameEntries(before, s)
	}
	for k, entries := range p.packages.allowed {
		want := len(before.packages.allowed[k])
		if k == key {
			want++
		}
		if len(entries) != want {
			return false
		}
	}
	return len(p.packages.allowed[key]) > 0 &&
		len(p.packages.allowed)-len(before.packages.allowed) <= 1 &&
		p.meaning() == before.meaning()
}

// meaning is everything that the document says apart from its allowlist.
func (p *Policy) meaning() string {
	var b strings.Builder
	for _, e := range p.explanations {
		if !strings.HasPrefix(e.Key, "allowed_packages") {
			b.WriteString(e.Key + "\x00" + e.Meaning + "\x00")
		}
	}
	return b.String()
}

// insertion puts text into a document: whole lines before line (column 0), or
// words before a column of it. Both count from 1, columns in characters.
type insertion struct {
	line, column int
	text         string
}

const endOfDocument = 1 << 30

func (in insertion) applyTo(document []byte) []byte {
	feed := "\n"
	if bytes.Contains(document, []byte("\r\n")) {
		feed = "\r\n"
	}
	lines := bytes.SplitAfter(document, []byte("\n"))
	at := 0
	for i := 0; i < in.line-1 && i < len(lines); i++ {
		at += len(lines[i])
	}
	text := in.text
	if in.column > 0 {
		if at >= len(document) {
			return document
		}
		line := []rune(string(lines[in.line-1]))
		at += len(string(line[:min(in.column-1, len(line))]))
	} else {
		text = strings.ReplaceAll(text, "\n", feed)
		if at > 0 && document[at-1] != '\n' {
			text = feed + text
		}
	}
	return slices.Concat(document[:at], []byte(text), document[at:])
}

// places are the insertions that may add the entry, the nicest first.
func places(root *yaml.Node, s suggestion) []insertion {
	lists := childOf(root, "allowed_packages")
	if lists == nil {
		if isFlow(root) {
			return []insertion{insertFirst(root, "allowed_packages: { "+string(s.ecosystem)+": [ "+s.flowText()+" ] }")}
		}
		return []insertion{{line: endOfDocument, text: s.document()}, {line: root.Line, text: s.document()}}
	}
	list := childOf(lists, string(s.ecosystem))
	if list == nil {
		if isFlow(lists) {
			return []insertion{insertFirst(lists, string(s.ecosystem)+": [ "+s.flowText()+" ]")}
		}
		indent := lists.Column - 1
		text := strings.Repeat(" ", indent) + string(s.ecosystem) + ":\n" + s.blockText(indent+2)
		return []insertion{{line: lastLine(lists) + 1, text: text}, {line: lists.Line, text: text}}
	}
	if isFlow(list) {
		return []insertion{insertFirst(list, s.flowText())}
	}
	text := s.blockText(list.Column - 1)
	return []insertion{{line: lastLine(list) + 1, text: text}, {line: list.Line, text: text}}
}

// insertFirst puts an element first in a flow collection, whose bracket is where
// the node begins; its end has no position.
func insertFirst(collection *yaml.Node, element string) insertion {
	text := " " + element
	if len(collection.Content) > 0 {
		text += ","
	}
	return insertion{line: collection.Line, column: collection.Column + 1, text: text}
}

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

func childOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// lastLine is the last line on which a value of the node begins.
func lastLine(n *yaml.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, lastLine(c))
	}
	return line
}
