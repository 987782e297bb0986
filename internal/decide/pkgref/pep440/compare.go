package pep440

import (
	"cmp"
	"math"
	"strings"
)

// Compare orders versions: -1, 0 or 1. "1.0" and "1.0.0" are equal.
func (v Version) Compare(o Version) int {
	if c := v.comparePublic(o); c != 0 {
		return c
	}
	return compareLocal(v.local, o.local)
}

// CompareBound compares, as Compare does, but a local part of v counts only where o has one: 2.0+cu118 is
// a build of 2.0, and wherever that one is meant it is, too.
func (v Version) CompareBound(o Version) int {
	if o.local == "" {
		return v.comparePublic(o)
	}
	return v.Compare(o)
}

// comparePublic leaves the local part out.
func (v Version) comparePublic(o Version) int {
	if c := v.compareBase(o); c != 0 {
		return c
	}
	if c := cmp.Compare(v.preKey(), o.preKey()); c != 0 {
		return c
	}
	if c := cmp.Compare(v.preN, o.preN); c != 0 {
		return c
	}
	if c := cmp.Compare(v.post, o.post); c != 0 {
		return c
	}
	return cmp.Compare(v.devKey(), o.devKey())
}

// compareBase compares epoch and release.
func (v Version) compareBase(o Version) int {
	if c := cmp.Compare(v.epoch, o.epoch); c != 0 {
		return c
	}
	for i := range max(len(v.release), len(o.release)) {
		if c := cmp.Compare(v.Segment(i), o.Segment(i)); c != 0 {
			return c
		}
	}
	return 0
}

// preKey puts a bare dev release before a, b, rc, and a final after them.
func (v Version) preKey() int {
	switch {
	case v.pre != 0:
		return int(v.pre)
	case v.post == none && v.dev != none:
		return 0
	}
	return int(candidate) + 1
}

// devKey puts a version without a dev part after those with one.
func (v Version) devKey() int64 {
	if v.dev == none {
		return math.MaxInt64
	}
	return v.dev
}

// compareLocal: none first; then part by part, words before numbers, shorter
// before longer.
func compareLocal(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := compareLocalPart(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareLocalPart(x, y string) int {
	nx, ny := isNumber(x), isNumber(y)
	switch {
	case nx && ny: // without leading zeros: longer is greater
		if c := cmp.Compare(len(x), len(y)); c != 0 {
			return c
		}
		return strings.Compare(x, y)
	case nx:
		return 1
	case ny:
		return -1
	}
	return strings.Compare(x, y)
}

func isNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
