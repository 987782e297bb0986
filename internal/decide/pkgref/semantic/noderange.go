package semantic

import (
	"slices"
	"strings"
)

// NodeRange is a range in the language of the semver package that npm, pnpm
// and yarn read requirements by. The zero value matches nothing.
type NodeRange struct {
	// sets are alternatives; all comparators of one must hold, none of an empty one.
	sets [][]comparator
}

type comparator struct {
	op      operator
	version Version
	bare    bool // "<2", of which npm makes "<2.0.0-0"
}

type operator byte

const (
	opEqual operator = iota
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
)

const (
	maxNodeRange = 2048
	maxSets      = 64
	// maxSafe is the largest number that node's own parser takes.
	maxSafe = 1<<53 - 1
)

// ParseNodeRange reads "^1.2.3", "~1.2", "1.x || >=2.5.0", "1.2.3 - 2.3.4", "*",
// "" (any). Forms that the language does not have (a tag such as "latest", a URL, an
// alias) are refused, and so are a few oddities that semver lets pass ("vv1.2").
func ParseNodeRange(s string) (NodeRange, bool) {
	var r NodeRange
	if len(s) > maxNodeRange {
		return r, false
	}
	alternatives := strings.Split(s, "||")
	if len(alternatives) > maxSets {
		return r, false
	}
	for _, a := range alternatives {
		set, ok := parseSet(strings.FieldsFunc(a, isBlank))
		if !ok {
			return NodeRange{}, false
		}
		r.sets = append(r.sets, set)
	}
	for _, set := range r.sets {
		if len(set) == 0 {
			r.sets = [][]comparator{nil} // "any" swallows its alternatives, and so their pre-releases
			break
		}
	}
	return r, true
}

func isBlank(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

// parseSet reads one alternative's words. ok and no comparator: any version.
func parseSet(words []string) (set []comparator, ok bool) {
	if len(words) == 3 && words[1] == "-" {
		return parseHyphen(words[0], words[2])
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.Trim(word, "<>=~^") == "" && i+1 < len(words) { // "> 1.2.3"
			i++
			word += words[i]
		}
		more, ok := parseWord(word)
		if !ok || len(set)+len(more) > maxClauses {
			return nil, false
		}
		set = append(set, more...)
	}
	return slices.DeleteFunc(set, isAnyRelease), true
}

// isAnyRelease: what every release satisfies is as good as no comparator.
func isAnyRelease(c comparator) bool { return c == comparator{op: opGreaterEqual} }

func parseHyphen(low, high string) ([]comparator, bool) {
	from, okFrom := parsePartial(low)
	to, okTo := parsePartial(high)
	if !okFrom || !okTo {
		return nil, false
	}
	var set []comparator
	if from.known > 0 {
		set = append(set, comparator{op: opGreaterEqual, version: from.version})
	}
	switch to.known {
	case 0:
	case 3:
		set = append(set, comparator{op: opLessEqual, version: to.version})
	default:
		set = append(set, belowVersion(to.nextAt(to.known)))
	}
	return slices.DeleteFunc(set, isAnyRelease), true
}

// parseWord reads an operator and what follows it.
func parseWord(word string) ([]comparator, bool) {
	op := ""
	for _, candidate := range [...]string{"~>", "~", "^", ">=", "<=", ">", "<", "="} {
		if strings.HasPrefix(word, candidate) {
			op = candidate
			break
		}
	}
	p, ok := parsePartial(word[len(op):])
	if !ok {
		return nil, false
	}
	switch op {
	case "^":
		return p.rangeWithin(p.caretDepth()), true
	case "~", "~>":
		return p.rangeWithin(min(p.known, 2)), true
	case ">", "<", ">=", "<=":
		return p.compared(op), true
	}
	if p.known == 3 {
		return []comparator{{op: opEqual, version: p.version}}, true
	}
	return p.rangeWithin(p.known), true
}

// partial is a version of which only the first known segments are given.
type partial struct {
	version Version // the rest is 0
	known   int
}

// parsePartial reads "1", "1.2.x", "1.2.3-rc.1", "*", "v1.2.3", "".
func parsePartial(s string) (partial, bool) {
	var p partial
	if s == "" {
		return p, false
	}
	s = strings.TrimPrefix(s, "v")
	core, build, hasBuild := strings.Cut(s, "+")
	core, pre, hasPre := strings.Cut(core, "-")
	parts := strings.Split(core, ".")
	if len(s) > maxLength || len(parts) > 3 || (hasBuild || hasPre) && len(parts) != 3 ||
		hasBuild && !identifiers(build, false) || hasPre && !identifiers(pre, true) {
		return p, false
	}
	open := false
	for i, part := range parts {
		if part == "x" || part == "X" || part == "*" {
			open = true
			continue
		}
		n, ok := parseNumber(part)
		if !ok || n > maxSafe || open {
			return p, false
		}
		p.version.numbers[i] = n
		p.known = i + 1
	}
	if p.known == 3 {
		p.version.pre = pre
	}
	return p, true
}

// nextAt is the version in which segment n-1 is one higher and the rest 0.
func (p partial) nextAt(n int) Version {
	var v Version
	copy(v.numbers[:n], p.version.numbers[:n])
	v.numbers[n-1]++
	return v
}

// belowVersion keeps the pre-releases of v out too.
func belowVersion(v Version) comparator {
	v.pre = "0"
	return comparator{op: opLess, version: v}
}

// rangeWithin are the versions from p on whose first n segments are p's; n 0: any.
func (p partial) rangeWithin(n int) []comparator {
	if n == 0 {
		return nil
	}
	return []comparator{{op: opGreaterEqual, version: p.version}, belowVersion(p.nextAt(n))}
}

// caretDepth is how many segments "^" keeps: through the first that is not 0.
func (p partial) caretDepth() int {
	for i := range p.known {
		if p.version.numbers[i] != 0 {
			return i + 1
		}
	}
	return p.known
}

// compared is an inequality. With an open version it begins or ends where the
// versions that the open one stands for do.
func (p partial) compared(op string) []comparator {
	switch {
	case p.known == 0 && (op == ">" || op == "<"):
		return []comparator{belowVersion(Version{})} // nothing
	case p.known == 0:
		return nil
	case op == ">" && p.known < 3:
		return []comparator{{op: opGreaterEqual, version: p.nextAt(p.known)}}
	case op == ">":
		return []comparator{{op: opGreater, version: p.version}}
	case op == "<=" && p.known < 3:
		return []comparator{belowVersion(p.nextAt(p.known))}
	case op == "<=":
		return []comparator{{op: opLessEqual, version: p.version}}
	case op == ">=":
		return []comparator{{op: opGreaterEqual, version: p.version}}
	case p.known < 3:
		c := belowVersion(p.version)
		c.bare = true
		return []comparator{c}
	}
	return []comparator{{op: opLess, version: p.version}}
}

// Match reports whether v satisfies the range. A pre-release does only if a
// comparator of the same alternative names a pre-release of the same
// major.minor.patch.
func (r NodeRange) Match(v Version) bool { return r.matchesVersion(v, false) }

// MatchPreReleases matches, as Match does, and takes pre-releases by their order alone;
// except that "<2.0.0" matches none of 2.0.0.
func (r NodeRange) MatchPreReleases(v Version) bool { return r.matchesVersion(v, true) }

func (r NodeRange) matchesVersion(v Version, preReleases bool) bool {
	if slices.Max(v.numbers[:]) > maxSafe {
		return false // node takes it for no version
	}
	for _, set := range r.sets {
		if isInSet(set, v, preReleases) {
			return true
		}
	}
	return false
}

func isInSet(set []comparator, v Version, preReleases bool) bool {
	named := v.pre == "" || preReleases
	for _, c := range set {
		if !c.matchesVersion(v, preReleases) {
			return false
		}
		named = named || c.version.pre != "" && c.version.compareCore(v) == 0
	}
	return named
}

func (c comparator) matchesVersion(v Version, preReleases bool) bool {
	order := v.Compare(c.version)
	switch c.op {
	case opLess:
		return order < 0 && (!preReleases || c.version.pre != "" || v.pre == "" || c.version.compareCore(v) != 0)
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	case opEqual:
		return order == 0
	}
	return false
}
