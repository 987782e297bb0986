package semantic

import "strings"

// clause is one comparison; a prefix clause ("==1.2.*") compares n segments.
type clause struct {
	op      string
	version Version
	n       int
}

// Range is clauses that must all hold. The zero value matches every version.
type Range struct{ clauses []clause }

const maxClauses = 64

// ParseRange reads "", ">=1.2.0,<2", "==1.2.*". Operators are == != >= <= > <;
// missing segments are 0 ("<2" is "<2.0.0"). A leading "v" is allowed. Any
// other syntax is refused, so that it can't admit by being misread.
func ParseRange(s string) (Range, bool) {
	if strings.Trim(s, " \t") == "" {
		return Range{}, true
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxClauses {
		return Range{}, false
	}
	var r Range
	for _, part := range parts {
		c, ok := parseClause(strings.Trim(part, " \t"))
		if !ok {
			return Range{}, false
		}
		r.clauses = append(r.clauses, c)
	}
	return r, true
}

func parseClause(s string) (clause, bool) {
	var c clause
	for _, op := range [...]string{"==", "!=", ">=", "<=", ">", "<"} {
		if rest, ok := strings.CutPrefix(s, op); ok {
			c.op, s = op, strings.TrimPrefix(strings.Trim(rest, " \t"), "v")
			break
		}
	}
	if c.op == "" || len(s) > maxLength {
		return clause{}, false
	}
	bare, prefix := strings.CutSuffix(s, ".*")
	if prefix {
		if c.op != "==" && c.op != "!=" {
			return clause{}, false
		}
		c.n = 1 + strings.Count(bare, ".")
		if c.n > 2 || strings.ContainsAny(bare, "-+") {
			return clause{}, false
		}
		s = bare
	}
	if !strings.ContainsAny(s, "-+") {
		for strings.Count(s, ".") < 2 {
			s += ".0"
		}
	}
	var ok bool
	c.version, ok = Parse(s)
	return c, ok
}

// Match reports whether v satisfies every clause. "<2.0.0" matches no
// pre-release of 2.0.0, although it sorts before it.
func (r Range) Match(v Version) bool {
	for _, c := range r.clauses {
		if !c.matchesVersion(v) {
			return false
		}
	}
	return true
}

// Any reports whether it has no clause.
func (r Range) Any() bool { return len(r.clauses) == 0 }

func (c clause) matchesVersion(v Version) bool {
	switch c.op {
	case "==":
		return c.equalsVersion(v)
	case "!=":
		return !c.equalsVersion(v)
	case ">=":
		return v.Compare(c.version) >= 0
	case "<=":
		return v.Compare(c.version) <= 0
	case ">":
		return v.Compare(c.version) > 0
	case "<":
		return v.Compare(c.version) < 0 &&
			(c.version.pre != "" || v.pre == "" || v.compareCore(c.version) != 0)
	}
	return false
}

func (c clause) equalsVersion(v Version) bool {
	for i := range c.n {
		if v.numbers[i] != c.version.numbers[i] {
			return false
		}
	}
	return c.n > 0 || v.Compare(c.version) == 0
}
