package pkgref

import (
	"cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/pep440"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

// grammar is how versions and ranges are written. Several ecosystems may share one.
type grammar uint8

const (
	noGrammar       grammar = iota
	pep440Grammar           // versions and specifiers of PEP 440
	nodeGrammar             // semantic versions, npm's ranges
	goGrammar               // semantic versions as Go writes them, clauses
	semanticGrammar         // semantic versions, clauses as ">=1.2.0,<2"
)

// grammarOf is noGrammar for what is no ecosystem.
func grammarOf(e Ecosystem) grammar {
	f := familyOf(e)
	if f == nil {
		return noGrammar
	}
	return f.grammar()
}

// Version is a version of one ecosystem, ready to be ordered. The zero value is
// below all. It is a value: whoever judges an index makes thousands.
type Version struct {
	text     string
	grammar  grammar
	readable bool
	python   pep440.Version
	semantic semantic.Version
}

// ParseVersion reads a version. One that its ecosystem can't have is a Version
// all the same, below all that it can: ok tells.
func ParseVersion(e Ecosystem, text string) (v Version, ok bool) {
	v.text, v.grammar = text, grammarOf(e)
	switch v.grammar {
	case pep440Grammar:
		v.python, v.readable = pep440.Parse(text)
	case goGrammar:
		v.semantic, v.readable = semantic.ParseGo(text)
	case nodeGrammar, semanticGrammar:
		v.semantic, v.readable = semantic.Parse(text)
	case noGrammar:
	}
	return v, v.readable
}

// String is the version as it was written.
func (v Version) String() string { return v.text }

// Readable tells whether its ecosystem can have this version.
func (v Version) Readable() bool { return v.readable }

// Canonical tells whether the text is the ecosystem's one spelling of a readable
// version.
func (v Version) Canonical() bool {
	return v.readable && (v.grammar != pep440Grammar || v.python.Is(v.text))
}

// PreRelease tells whether it is one. Go's pseudo-versions are.
func (v Version) PreRelease() bool {
	if v.grammar == pep440Grammar {
		return v.python.PreRelease()
	}
	return v.semantic.PreRelease()
}

// Stable tells whether an open requirement may take it: readable, and no
// pre-release.
func (v Version) Stable() bool { return v.readable && !v.PreRelease() }

// Epoch is what Python writes before "!", and stronger than all numbers; 0 elsewhere.
func (v Version) Epoch() int64 {
	if v.grammar == pep440Grammar {
		return v.python.Epoch()
	}
	return 0
}

// Segment is the i-th number, from 0; 0 beyond the last.
func (v Version) Segment(i int) int64 {
	if v.grammar == pep440Grammar {
		return v.python.Segment(i)
	}
	return v.semantic.Segment(i)
}

// SameNumbers tells whether two versions have the epoch and the first three
// numbers in common.
func (v Version) SameNumbers(o Version) bool {
	for i := range 3 {
		if v.Segment(i) != o.Segment(i) {
			return false
		}
	}
	return v.Epoch() == o.Epoch()
}

// Major is the epoch and the first number: releases that have both in common are
// a line.
func (v Version) Major() [2]int64 { return [2]int64{v.Epoch(), v.Segment(0)} }

// Compatible names the releases that a range with a caret takes this one for: the
// major version, below 1.0.0 of semantic versions the minor one.
func (v Version) Compatible() [2]int64 {
	switch major := v.Segment(0); {
	case v.grammar == pep440Grammar:
		return [2]int64{v.Epoch(), major}
	case major > 0:
		return [2]int64{major, 0}
	}
	return [2]int64{0, v.Segment(1)}
}

// Compare orders versions of one ecosystem: -1, 0 or 1. A version that can't be read is below one
// that can, and among its like by its text. Spellings that have no order among them (Python's 1.0
// and 1.0.0, the builds of a semantic version) are equal.
func (v Version) Compare(o Version) int {
	switch {
	case v.readable != o.readable && v.readable:
		return 1
	case v.readable != o.readable:
		return -1
	case !v.readable:
		return cmp.Compare(v.text, o.text)
	case v.grammar == pep440Grammar:
		return v.python.Compare(o.python)
	}
	return v.semantic.Compare(o.semantic)
}

// CompareBound compares with a version that an advisory names: a build of it (Python's
// 2.0+cu118, where that one is 2.0) is equal to it.
func (v Version) CompareBound(o Version) int {
	if v.grammar == pep440Grammar && v.readable && o.readable {
		return v.python.CompareBound(o.python)
	}
	return v.Compare(o)
}

// CompareSpelled compares, as Compare does, and equal versions by their text: no two
// spellings are equal.
func (v Version) CompareSpelled(o Version) int {
	return cmp.Or(v.Compare(o), cmp.Compare(v.text, o.text))
}

// Same tells whether two versions name one release: Python's 1.0 is 1.0.0;
// elsewhere each text is a release of its own. What Python can't read names none.
func (v Version) Same(o Version) bool {
	if v.grammar != pep440Grammar {
		return v.text == o.text
	}
	return v.readable && o.readable && v.python.Compare(o.python) == 0
}

// Compare orders two versions as they are written; see Version.Compare.
func Compare(e Ecosystem, a, b string) int {
	x, _ := ParseVersion(e, a)
	y, _ := ParseVersion(e, b)
	return x.Compare(y)
}

// SameVersion reports whether two spellings name one release.
func SameVersion(e Ecosystem, a, b string) bool {
	if a == b || grammarOf(e) != pep440Grammar {
		return a == b
	}
	x, _ := ParseVersion(e, a)
	y, _ := ParseVersion(e, b)
	return x.Same(y)
}
