// Package pep440 parses, prints and compares Python versions and specifiers as
// PEP 440 and the `packaging` library do. It is its own, small implementation
// because thousands of versions are judged per index page: it neither
// allocates per comparison nor panics, whatever it is given.
//
// The release of a version is its dotted numbers; a pre-release has an a, b, rc or dev part. A
// specifier has clauses, as in ">=2.31,<3".
package pep440

import (
	"strconv"
	"strings"
)

// Limits: a version beyond them is no version. Numbers are at most 18 digits,
// which no real version exceeds (dates have 8 or 14).
const (
	maxLength   = 256
	maxSegments = 32
	maxDigits   = 18
)

// letter is the kind of a pre-release, ordered.
type letter uint8

const (
	alpha letter = iota + 1
	beta
	candidate
)

// none says that a part is absent; numbers are never negative.
const none = -1

// Version is a parsed version. Make one with Parse; the zero value is "".
type Version struct {
	epoch   int64
	release []int64
	pre     letter // 0: none
	preN    int64
	post    int64 // none if absent
	dev     int64 // none if absent
	local   string
}

// Parse reads any spelling that PEP 440 permits, with space around it.
func Parse(s string) (Version, bool) {
	if len(s) > maxLength || !isASCII(s) {
		return Version{}, false
	}
	s = strings.ToLower(strings.Trim(s, " \t\n\r\f\v"))
	sc := scanner{rest: strings.TrimPrefix(s, "v")}
	v := Version{post: none, dev: none}
	first, ok := sc.takeNumber()
	if !ok {
		return Version{}, false
	}
	if sc.takePrefix("!") {
		v.epoch = first
		if first, ok = sc.takeNumber(); !ok {
			return Version{}, false
		}
	}
	v.release = append(make([]int64, 0, 4), first)
	for sc.dotDigit() {
		sc.rest = sc.rest[1:]
		n, ok := sc.takeNumber()
		if !ok || len(v.release) == maxSegments {
			return Version{}, false
		}
		v.release = append(v.release, n)
	}
	if !v.suffixes(&sc) {
		return Version{}, false
	}
	return v, sc.rest == ""
}

// isASCII keeps out letters that lower-casing would turn into ASCII ones.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// suffixes reads pre, post, dev and local parts; each is optional.
func (v *Version) suffixes(sc *scanner) bool {
	if kind, n, found, ok := sc.preRelease(); !ok {
		return false
	} else if found {
		v.pre, v.preN = kind, n
	}
	if n, found, ok := sc.postRelease(); !ok {
		return false
	} else if found {
		v.post = n
	}
	if n, found, ok := sc.takeWord("dev"); !ok {
		return false
	} else if found {
		v.dev = n
	}
	if sc.takePrefix("+") {
		v.local, sc.rest = sc.rest, ""
		return v.normalLocal()
	}
	return true
}

// normalLocal puts "." for other separators and drops leading zeros.
func (v *Version) normalLocal() bool {
	parts := strings.FieldsFunc(v.local, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	if len(parts) == 0 || len(parts) != 1+strings.Count(v.local, "-")+strings.Count(v.local, "_")+strings.Count(v.local, ".") {
		return false
	}
	for i, p := range parts {
		digits := true
		for j := range len(p) {
			if !isDigit(p[j]) && (p[j] < 'a' || p[j] > 'z') {
				return false
			}
			digits = digits && isDigit(p[j])
		}
		if digits {
			if p = strings.TrimLeft(p, "0"); p == "" {
				p = "0"
			}
			parts[i] = p
		}
	}
	v.local = strings.Join(parts, ".")
	return true
}

// String is the normal form, as `packaging` prints it: trailing zeros stay.
func (v Version) String() string {
	b := v.public(make([]byte, 0, 24))
	if v.local != "" {
		b = append(append(b, '+'), v.local...)
	}
	return string(b)
}

// Is reports whether s is the normal form, without making one.
func (v Version) Is(s string) bool {
	var room [64]byte
	b := v.public(room[:0])
	if v.local != "" {
		b = append(append(b, '+'), v.local...)
	}
	return string(b) == s
}

func (v Version) public(b []byte) []byte {
	if v.epoch != 0 {
		b = append(strconv.AppendInt(b, v.epoch, 10), '!')
	}
	for i, n := range v.release {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	switch v.pre {
	case alpha:
		b = strconv.AppendInt(append(b, 'a'), v.preN, 10)
	case beta:
		b = strconv.AppendInt(append(b, 'b'), v.preN, 10)
	case candidate:
		b = strconv.AppendInt(append(b, "rc"...), v.preN, 10)
	}
	if v.post != none {
		b = strconv.AppendInt(append(b, ".post"...), v.post, 10)
	}
	if v.dev != none {
		b = strconv.AppendInt(append(b, ".dev"...), v.dev, 10)
	}
	return b
}

// PreRelease reports whether it has an a, b, rc or dev part.
func (v Version) PreRelease() bool { return v.pre != 0 || v.dev != none }

// Epoch is the number before "!", 0 by default.
func (v Version) Epoch() int64 { return v.epoch }

// Segment is the release's i-th number; 0 beyond its end.
func (v Version) Segment(i int) int64 {
	if i < len(v.release) {
		return v.release[i]
	}
	return 0
}

// Segments is how many numbers the release is written with.
func (v Version) Segments() int { return len(v.release) }
