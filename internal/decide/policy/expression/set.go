package expression

import "unicode"

// class is one of \d, \s and \w.
type class byte

// runeRange is the characters from lo to hi.
type runeRange struct{ lo, hi rune }

// set is the characters that one place of the text may have.
type set struct {
	spans   []runeRange
	classes []class // in capitals: what is not in the class
	negated bool
	fold    bool // either case matches
	ascii   bool // classes and case know ASCII alone

	low [2]uint64 // the answers for ASCII; see sealSet
}

// sealSet computes the answers for ASCII. A set is not changed after it.
func (s *set) sealSet() *set {
	for r := range rune(unicode.MaxASCII + 1) {
		if s.holdsRune(r) {
			s.low[r/64] |= 1 << (r % 64)
		}
	}
	return s
}

func (s *set) hasRune(r rune) bool {
	if r <= unicode.MaxASCII {
		return s.low[r/64]&(1<<(r%64)) != 0
	}
	return s.holdsRune(r)
}

func (s *set) holdsRune(r rune) bool {
	for _, c := range s.classes {
		if c.hasRune(r, s.ascii) {
			return !s.negated
		}
	}
	if s.inSpans(r) {
		return !s.negated
	}
	if s.fold {
		for other := nextCase(r, s.ascii); other != r; other = nextCase(other, s.ascii) {
			if s.inSpans(other) {
				return !s.negated
			}
		}
	}
	return s.negated
}

func (s *set) inSpans(r rune) bool {
	for _, x := range s.spans {
		if x.lo <= r && r <= x.hi {
			return true
		}
	}
	return false
}

func (c class) hasRune(r rune, ascii bool) bool {
	switch c {
	case 'd':
		return isDigit(r, ascii)
	case 'D':
		return !isDigit(r, ascii)
	case 's':
		return isSpace(r, ascii)
	case 'S':
		return !isSpace(r, ascii)
	case 'w':
		return isWord(r, ascii)
	}
	return !isWord(r, ascii) // W
}

func isDigit(r rune, ascii bool) bool {
	return '0' <= r && r <= '9' || !ascii && r > unicode.MaxASCII && unicode.Is(unicode.Nd, r)
}

// isSpace is Python's str.isspace: what Unicode calls white space, and the four
// separators of ASCII.
func isSpace(r rune, ascii bool) bool {
	if r == ' ' || '\t' <= r && r <= '\r' {
		return true
	}
	return !ascii && (0x1c <= r && r <= 0x1f || r == 0x85 || r > unicode.MaxASCII && unicode.Is(unicode.Z, r))
}

// isWord is Python's str.isalnum, and "_". Marks are no part of a word.
func isWord(r rune, ascii bool) bool {
	if r <= unicode.MaxASCII {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
	}
	return !ascii && (unicode.Is(unicode.L, r) || unicode.Is(unicode.N, r))
}

// nextCase goes round the characters that are one where case does not count:
// Unicode's simple folding, and four groups that Python adds, of what has one
// lower or one upper case in some way.
func nextCase(r rune, ascii bool) rune {
	if ascii {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}
	switch r {
	case 'I':
		return 'i'
	case 'i':
		return 'İ'
	case 'İ':
		return 'ı'
	case 'ı':
		return 'I'
	case 0x0390, 0x1fd3: // iota with dialytika and tonos
		return 0x0390 ^ 0x1fd3 ^ r
	case 0x03b0, 0x1fe3: // upsilon with them
		return 0x03b0 ^ 0x1fe3 ^ r
	case 0xfb05, 0xfb06: // the ligatures of st
		return 0xfb05 ^ 0xfb06 ^ r
	}
	return unicode.SimpleFold(r)
}
