// Package semantic parses and compares semantic versions (major.minor.patch)
// strictly, and understands two range languages: node's own, whole, and a small
// common one for policy documents about Rust and Go and for the requirements of
// Go modules. They refuse what they do not understand, so that nothing is
// admitted by being misread.
//
// A range is clauses such as ">=1.2.0,<2" that must all hold; a node range is alternatives of
// comparators; a pre-release has a part after "-".
package semantic

import (
	"cmp"
	"strconv"
	"strings"
)

const (
	maxLength = 256
	maxDigits = 18
)

// Version is a parsed version; build metadata is dropped, as it has no order.
type Version struct {
	numbers [3]int64
	pre     string
}

// Parse reads "1.2.3", "1.2.3-rc.1", "1.2.3+build"; nothing looser.
func Parse(s string) (Version, bool) {
	if len(s) > maxLength {
		return Version{}, false
	}
	var v Version
	s, build, hasBuild := strings.Cut(s, "+")
	if hasBuild && !identifiers(build, false) {
		return Version{}, false
	}
	core, pre, hasPre := strings.Cut(s, "-")
	if hasPre && !identifiers(pre, true) {
		return Version{}, false
	}
	v.pre = pre
	parts := strings.Split(core, ".")
	if len(parts) != len(v.numbers) {
		return Version{}, false
	}
	for i, p := range parts {
		n, ok := parseNumber(p)
		if !ok {
			return Version{}, false
		}
		v.numbers[i] = n
	}
	return v, true
}

// ParseGo reads a Go module's version: Parse's with a leading "v".
func ParseGo(s string) (Version, bool) {
	rest, ok := strings.CutPrefix(s, "v")
	if !ok {
		return Version{}, false
	}
	return Parse(rest)
}

// PreRelease reports whether it has a part after "-". Go's pseudo-versions do.
func (v Version) PreRelease() bool { return v.pre != "" }

// Segment is major, minor or patch (0, 1, 2); 0 beyond.
func (v Version) Segment(i int) int64 {
	if i < len(v.numbers) {
		return v.numbers[i]
	}
	return 0
}

// Compare orders versions by the specification's precedence: -1, 0 or 1.
func (v Version) Compare(o Version) int {
	if c := v.compareCore(o); c != 0 {
		return c
	}
	switch {
	case v.pre == o.pre:
		return 0
	case v.pre == "":
		return 1
	case o.pre == "":
		return -1
	}
	return comparePre(v.pre, o.pre)
}

func (v Version) compareCore(o Version) int {
	for i := range v.numbers {
		if c := cmp.Compare(v.numbers[i], o.numbers[i]); c != 0 {
			return c
		}
	}
	return 0
}

func comparePre(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := compareIdentifier(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareIdentifier(x, y string) int {
	nx, ny := digits(x), digits(y)
	switch {
	case nx && ny:
		if c := cmp.Compare(len(x), len(y)); c != 0 {
			return c
		}
	case nx:
		return -1
	case ny:
		return 1
	}
	return strings.Compare(x, y)
}

func parseNumber(s string) (int64, bool) {
	if !digits(s) || len(s) > maxDigits || (len(s) > 1 && s[0] == '0') {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// identifiers checks the dot-separated words after "-" or "+".
func identifiers(s string, noLeadingZero bool) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || (noLeadingZero && len(part) > 1 && part[0] == '0' && digits(part)) {
			return false
		}
		for i := range len(part) {
			c := part[i]
			if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
				return false
			}
		}
	}
	return true
}
