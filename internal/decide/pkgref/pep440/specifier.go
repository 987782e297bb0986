package pep440

import (
	"slices"
	"strings"
)

// operator of a clause.
type operator uint8

const (
	equal operator = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	compatible
	arbitrary
)

// Clause of a specifier.
type clause struct {
	op      operator
	version Version // see exclusive
	written Version
	prefix  bool   // "==1.2.*"
	text    string // of "===", lower case
}

// Specifier is a set of clauses that must all hold. The zero value matches
// every version.
type Specifier struct{ clauses []clause }

const maxClauses = 64

// ParseSpecifier reads "", ">=2.31,<3", "~=1.4.2", "==1.*". What PEP 440 does
// not know is refused.
func ParseSpecifier(s string) (Specifier, bool) {
	if strings.Trim(s, " \t") == "" {
		return Specifier{}, true
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxClauses {
		return Specifier{}, false
	}
	spec := Specifier{clauses: make([]clause, 0, len(parts))}
	for i, part := range parts {
		part = strings.Trim(part, " \t")
		if part == "" && i == len(parts)-1 && i > 0 {
			continue // a trailing comma is common in the wild
		}
		c, ok := parseClause(part)
		if !ok {
			return Specifier{}, false
		}
		spec.clauses = append(spec.clauses, c)
	}
	return spec, true
}

func cutOperator(s string) (operator, string, bool) {
	for _, o := range [...]struct {
		text string
		op   operator
	}{
		{"===", arbitrary},
		{"==", equal},
		{"!=", notEqual},
		{"<=", lessEqual},
		{">=", greaterEqual},
		{"~=", compatible},
		{"<", less},
		{">", greater},
	} {
		if rest, ok := strings.CutPrefix(s, o.text); ok {
			return o.op, strings.Trim(rest, " \t"), true
		}
	}
	return 0, "", false
}

func parseClause(s string) (clause, bool) {
	op, text, ok := cutOperator(s)
	if !ok || text == "" || len(text) > maxLength {
		return clause{}, false
	}
	c := clause{op: op, text: strings.ToLower(text)}
	if op == arbitrary {
		return c, !strings.ContainsAny(text, " \t;)")
	}
	if bare, found := strings.CutSuffix(text, ".*"); found {
		if bare == "" || !isDigit(bare[len(bare)-1]) {
			return clause{}, false
		}
		c.prefix, text = true, bare
	}
	if c.version, ok = Parse(text); !ok {
		return clause{}, false
	}
	v := c.version
	c.written = v
	switch op {
	case equal, notEqual:
		return c, !c.prefix || v.releaseOnly()
	case compatible:
		return c, !c.prefix && v.local == "" && len(v.release) >= 2
	case less, lessEqual, greater, greaterEqual, arbitrary:
	}
	return c.exclusive(), !c.prefix && v.local == ""
}

// exclusive moves the bound of "<" and ">" past what they exclude besides the
// version itself: "<3" no pre-release of 3, ">3.post1" no local release of it.
// What ">3" excludes, the post-releases of 3, has no such bound: see matchesVersion.
func (c clause) exclusive() clause {
	v := &c.version
	switch {
	case c.op == less && !v.PreRelease():
		v.dev = 0
	case c.op == greater && v.dev != none:
		c.op = greaterEqual
		v.dev++
	case c.op == greater && v.post != none:
		c.op = greaterEqual
		v.post++
		v.dev = 0
	}
	return c
}

// Match reports whether v satisfies every clause. Pre-releases are compared
// like any version; whether they are wanted is the caller's question. As the
// specification says, "<3" matches no pre-release of 3, and ">3" no post or
// local release of 3.
func (s Specifier) Match(v Version) bool {
	for i := range s.clauses {
		if !s.clauses[i].matchesVersion(v) {
			return false
		}
	}
	return true
}

// NamesPreRelease reports whether a clause that wants versions is written with a
// pre-release: "==0.50b0", ">=2.0rc1", which is how a requirement says that it takes
// pre-releases.
func (s Specifier) NamesPreRelease() bool {
	return slices.ContainsFunc(s.clauses, func(c clause) bool {
		switch c.op {
		case equal, greater, greaterEqual, compatible:
			return c.written.PreRelease()
		case arbitrary:
			v, ok := Parse(c.text)
			return ok && v.PreRelease()
		case notEqual, less, lessEqual:
		}
		return false
	})
}

// Any reports whether it has no clause.
func (s Specifier) Any() bool { return len(s.clauses) == 0 }

func (c *clause) matchesVersion(v Version) bool {
	switch c.op {
	case equal:
		return c.equalsVersion(v)
	case notEqual:
		return !c.equalsVersion(v)
	case lessEqual:
		return v.comparePublic(c.version) <= 0
	case greaterEqual:
		return v.comparePublic(c.version) >= 0
	case less:
		return v.Compare(c.version) < 0
	case greater:
		return v.comparePublic(c.version) > 0 &&
			(v.compareBase(c.version) != 0 || v.pre != c.version.pre || v.preN != c.version.preN)
	case compatible:
		return v.comparePublic(c.version) >= 0 && v.hasPrefix(c.version, len(c.version.release)-1)
	case arbitrary:
		return strings.EqualFold(v.String(), c.text)
	}
	return false
}

func (c *clause) equalsVersion(v Version) bool {
	if c.prefix {
		return v.hasPrefix(c.version, len(c.version.release))
	}
	if c.version.local == "" {
		return v.comparePublic(c.version) == 0
	}
	return v.Compare(c.version) == 0
}

// releaseOnly: only such a version may stand before ".*".
func (v Version) releaseOnly() bool {
	return v.pre == 0 && v.post == none && v.dev == none && v.local == ""
}

// hasPrefix reports whether v begins with the first n release segments of p.
func (v Version) hasPrefix(p Version, n int) bool {
	if v.epoch != p.epoch {
		return false
	}
	for i := range n {
		if v.Segment(i) != p.Segment(i) {
			return false
		}
	}
	return true
}
