package semantic

// releaseOf is the version that a pre-release leads to.
func (v Version) releaseOf() Version {
	v.pre = ""
	return v
}

// Covers is Match for lists of what is refused: order alone counts, and what
// leads to a release is in with it. So "<2" covers 2.0.0-rc.1, and ">=2" does,
// too.
func (r Range) Covers(v Version) bool { return r.inOrder(v) || r.inOrder(v.releaseOf()) }

func (r Range) inOrder(v Version) bool {
	for _, c := range r.clauses {
		if c.op == "<" && v.Compare(c.version) >= 0 || c.op != "<" && !c.matchesVersion(v) {
			return false
		}
	}
	return true
}

// Covers is Match for lists of what is refused, as Range's Covers is. "1.x" and
// "^1.2.3" cover none of 2.0.0's pre-releases; "<2" does.
func (r NodeRange) Covers(v Version) bool {
	for _, set := range r.sets {
		if inOrder(set, v) || inOrder(set, v.releaseOf()) {
			return true
		}
	}
	return false
}

func inOrder(set []comparator, v Version) bool {
	for _, c := range set {
		if c.bare {
			c.version = c.version.releaseOf()
		}
		if c.op == opLess && v.Compare(c.version) >= 0 || c.op != opLess && !c.matchesVersion(v, true) {
			return false
		}
	}
	return true
}
