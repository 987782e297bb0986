package policy

import (
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref/pep440"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref/semantic"
)

// entry is one package of a list.
type entry struct {
	line             int
	versions         versionRange // matches all if absent
	versionText      string       // as written; "" if absent
	limit            versionRange // of max_version
	limitText        string
	withDependencies bool
	prereleases      bool
	installScripts   bool
}

// release is a parsed version of one ecosystem.
type release struct {
	text     string
	python   pep440.Version
	semantic semantic.Version
	isPython bool
}

// versionRange is a set of versions of one ecosystem; the zero value is all.
type versionRange struct {
	python   pep440.Specifier
	semantic semantic.Range
	node     semantic.NodeRange
	isNode   bool    // node is meant
	cap      []int64 // of "2.x": the highest leading segments; nil if none
	epoch    int64   // of the cap
}

func parseRelease(ecosystem pkgref.Ecosystem, version string) (r release, ok bool) {
	r.text = version
	switch ecosystem {
	case pkgref.Python:
		r.isPython = true
		r.python, ok = pep440.Parse(version)
	case pkgref.Go:
		r.semantic, ok = semantic.ParseGo(version)
	case pkgref.Node, pkgref.Rust:
		r.semantic, ok = semantic.Parse(version)
	}
	return r, ok
}

func (r release) preRelease() bool {
	if r.isPython {
		return r.python.PreRelease()
	}
	return r.semantic.PreRelease()
}

func (r release) epoch() int64 {
	if r.isPython {
		return r.python.Epoch()
	}
	return 0
}

func (r release) segment(i int) int64 {
	if r.isPython {
		return r.python.Segment(i)
	}
	return r.semantic.Segment(i)
}

// parseRange reads a specifier in its ecosystem's syntax, as far as it is
// understood; "" is all.
func parseRange(ecosystem pkgref.Ecosystem, text string) (r versionRange, ok bool) {
	switch ecosystem {
	case pkgref.Python:
		r.python, ok = pep440.ParseSpecifier(text)
	case pkgref.Node:
		r.isNode = true
		r.node, ok = semantic.ParseNodeRange(text)
	case pkgref.Go, pkgref.Rust:
		r.semantic, ok = semantic.ParseRange(text)
	}
	return r, ok
}

// specifierExample is what to write instead of what parseRange refused.
func specifierExample(ecosystem pkgref.Ecosystem) string {
	switch ecosystem {
	case pkgref.Node:
		return "^1.2.3"
	case pkgref.Go:
		return ">=v1.2.3,<v2"
	case pkgref.Python, pkgref.Rust:
	}
	return ">=2.31,<3"
}

// parseLimit reads a max_version: "2.x" or "2.1.x" caps by leading segments,
// nothing of the next one included, its pre-releases least of all; a whole
// version is the highest.
func parseLimit(ecosystem pkgref.Ecosystem, text string) (versionRange, bool) {
	leading, wild := cutWildcard(text)
	var r versionRange
	if !wild {
		var ok bool
		if ecosystem == pkgref.Python {
			r.python, ok = pep440.ParseSpecifier("<=" + text)
		} else {
			r.semantic, ok = semantic.ParseRange("<=" + text)
		}
		return r, ok
	}
	if ecosystem == pkgref.Python {
		if epoch, rest, found := strings.Cut(leading, "!"); found {
			n, ok := segment(epoch)
			if !ok {
				return versionRange{}, false
			}
			r.epoch, leading = n, rest
		}
	} else {
		leading = strings.TrimPrefix(leading, "v")
	}
	for part := range strings.SplitSeq(leading, ".") {
		n, ok := segment(part)
		if !ok || len(r.cap) == 8 {
			return versionRange{}, false
		}
		r.cap = append(r.cap, n)
	}
	return r, true
}

func cutWildcard(text string) (leading string, found bool) {
	for _, suffix := range [...]string{".x", ".X", ".*"} {
		if leading, found = strings.CutSuffix(text, suffix); found {
			return leading, true
		}
	}
	return text, false
}

func segment(s string) (int64, bool) {
	if s == "" || len(s) > 18 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// match weighs a pre-release by its order. Node's ranges have a say of their
// own in that: without preReleases they match those only that they name.
func (v *versionRange) match(r release, preReleases bool) bool {
	switch {
	case v.cap != nil && !v.underCap(r):
		return false
	case r.isPython:
		return v.python.Match(r.python)
	case v.isNode && preReleases:
		return v.node.MatchPreReleases(r.semantic)
	case v.isNode:
		return v.node.Match(r.semantic)
	}
	return v.semantic.Match(r.semantic)
}

// covers is match for lists of what is refused: see Covers of each language.
func (v *versionRange) covers(r release) bool {
	switch {
	case r.isPython:
		return v.python.Covers(r.python)
	case v.isNode:
		return v.node.Covers(r.semantic)
	}
	return v.semantic.Covers(r.semantic)
}

func (v *versionRange) underCap(r release) bool {
	if r.isPython && r.python.Epoch() != v.epoch {
		return r.python.Epoch() < v.epoch
	}
	for i, most := range v.cap {
		if n := r.segment(i); n != most {
			return n < most
		}
	}
	return true
}
