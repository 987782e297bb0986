package pep440

// Covers is Match for lists of what is refused: order alone counts, and what
// leads to a release is in with it. So "<3" covers 3.0rc1 and ">=3" does, too,
// ">3" covers 3.post1, and "==3" covers 3.dev1.
func (s Specifier) Covers(v Version) bool {
	for {
		if s.inOrder(v) {
			return true
		}
		switch {
		case v.dev != none:
			v.dev = none
		case v.pre != 0: // a post-release of it with it
			v.pre, v.preN, v.post = 0, 0, none
		default:
			return false
		}
	}
}

func (s Specifier) inOrder(v Version) bool {
	for i := range s.clauses {
		if !s.clauses[i].inOrder(v) {
			return false
		}
	}
	return true
}

func (c *clause) inOrder(v Version) bool {
	switch c.op {
	case less:
		return v.comparePublic(c.written) < 0
	case greater:
		return v.Compare(c.written) > 0
	case arbitrary:
		other, ok := Parse(c.text)
		return c.matchesVersion(v) || ok && v.Compare(other) == 0
	case equal, notEqual, lessEqual, greaterEqual, compatible:
	}
	return c.matchesVersion(v)
}
