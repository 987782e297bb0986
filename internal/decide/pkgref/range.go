package pkgref

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/pep440"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

// Range is a set of versions of one ecosystem, in its own syntax: a specifier of
// PEP 440, a range of npm's, or clauses as ">=1.2.0,<2" for Go and Rust. The zero
// value is all versions.
type Range struct {
	text     string
	grammar  grammar
	python   pep440.Specifier
	node     semantic.NodeRange
	semantic semantic.Range
}

// ParseRange reads a range; "" is all versions. A text that isn't understood is refused,
// so that nothing is admitted by being misread.
func ParseRange(e Ecosystem, text string) (r Range, ok bool) {
	return grammarOf(e).parseRange(text)
}

func (g grammar) parseRange(text string) (r Range, ok bool) {
	r.text, r.grammar = text, g
	switch r.grammar {
	case pep440Grammar:
		r.python, ok = pep440.ParseSpecifier(text)
	case nodeGrammar:
		r.node, ok = semantic.ParseNodeRange(text)
	case goGrammar, semanticGrammar:
		r.semantic, ok = semantic.ParseRange(text)
	case noGrammar:
	}
	return r, ok
}

// AtMost is the range of all versions up to one. Its word on pre-releases is by order alone, in every ecosystem.
func AtMost(e Ecosystem, version string) (r Range, ok bool) {
	g := grammarOf(e)
	if g == nodeGrammar { // its own ranges have a say in pre-releases
		g = semanticGrammar
	}
	return g.parseRange("<=" + version)
}

// Match tells whether a version is in the range by the ecosystem's own rule. npm's
// takes only the pre-releases that it names; elsewhere order decides.
func (r Range) Match(v Version) bool {
	switch r.grammar {
	case pep440Grammar:
		return r.python.Match(v.python)
	case nodeGrammar:
		return r.node.Match(v.semantic)
	case noGrammar, goGrammar, semanticGrammar:
	}
	return r.semantic.Match(v.semantic)
}

// MatchPreReleases matches, as Match does, with all pre-releases that are in the range by order.
func (r Range) MatchPreReleases(v Version) bool {
	if r.grammar == nodeGrammar {
		return r.node.MatchPreReleases(v.semantic)
	}
	return r.Match(v)
}

// Covers is Match for lists of what is refused: order alone counts, and what leads
// to a release is in with it.
func (r Range) Covers(v Version) bool {
	switch r.grammar {
	case pep440Grammar:
		return r.python.Covers(v.python)
	case nodeGrammar:
		return r.node.Covers(v.semantic)
	case noGrammar, goGrammar, semanticGrammar:
	}
	return r.semantic.Covers(v.semantic)
}

// SelectsPreReleases tells whether Match itself says which pre-releases are in the
// range, as npm's does.
func (r Range) SelectsPreReleases() bool { return r.grammar == nodeGrammar }

// MayTakePreReleases tells whether a requirement may take pre-releases by its
// ecosystem's own rule. It is asked about each of a page, so only Python's is parsed:
// of the others it may say so of one that takes none, and of what can't be read.
func MayTakePreReleases(e Ecosystem, specifier string) bool {
	if grammarOf(e) != pep440Grammar {
		return strings.Contains(specifier, "-")
	}
	spec, ok := pep440.ParseSpecifier(specifier)
	return ok && spec.NamesPreRelease()
}

// Takes tells whether a requirement with this range takes a pre-release by the
// ecosystem's own rule. Go's requires exactly it: it can be a commit without a tag,
// whose version has the form of one. Python's and npm's are written with a
// pre-release, npm's with one of the same three numbers.
func (r Range) Takes(v Version) bool {
	switch r.grammar {
	case goGrammar:
		return r.text == ">="+v.text
	case nodeGrammar:
		return r.node.Match(v.semantic)
	case pep440Grammar:
		return r.python.NamesPreRelease() && r.python.Match(v.python)
	case noGrammar, semanticGrammar:
	}
	return false
}
