package pep440

import "strings"

// scanner reads a lower-cased version from left to right.
type scanner struct{ rest string }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (sc *scanner) takePrefix(prefix string) bool {
	rest, ok := strings.CutPrefix(sc.rest, prefix)
	sc.rest = rest
	return ok
}

// takeNumber reads digits; false if there are none or too many.
func (sc *scanner) takeNumber() (int64, bool) {
	var n int64
	i := 0
	significant := 0
	for i < len(sc.rest) && isDigit(sc.rest[i]) {
		n = n*10 + int64(sc.rest[i]-'0')
		if n > 0 {
			significant++
		}
		if significant > maxDigits {
			return 0, false
		}
		i++
	}
	sc.rest = sc.rest[i:]
	return n, i > 0
}

func (sc *scanner) dotDigit() bool {
	return len(sc.rest) > 1 && sc.rest[0] == '.' && isDigit(sc.rest[1])
}

// separator skips one "-", "_" or ".".
func separator(s string) string {
	if s != "" && (s[0] == '-' || s[0] == '_' || s[0] == '.') {
		return s[1:]
	}
	return s
}

// takeWord reads [sep]word[sep][number]; an absent number is 0. ok is false only
// for a number that is too long.
func (sc *scanner) takeWord(word string) (n int64, found, ok bool) {
	rest, found := strings.CutPrefix(separator(sc.rest), word)
	if !found {
		return 0, false, true
	}
	after := scanner{rest: separator(rest)}
	if after.rest != "" && isDigit(after.rest[0]) {
		n, ok = after.takeNumber()
		sc.rest = after.rest
		return n, true, ok
	}
	sc.rest = rest
	return 0, true, true
}

// preRelease tries the longer spellings first: "alpha" begins with "a".
func (sc *scanner) preRelease() (kind letter, n int64, found, ok bool) {
	for _, w := range [...]struct {
		word string
		kind letter
	}{
		{"alpha", alpha},
		{"a", alpha},
		{"beta", beta},
		{"b", beta},
		{"preview", candidate},
		{"pre", candidate},
		{"rc", candidate},
		{"c", candidate},
	} {
		if n, found, ok = sc.takeWord(w.word); found || !ok {
			return w.kind, n, found, ok
		}
	}
	return 0, 0, false, true
}

// postRelease also knows the implicit form "1.0-1".
func (sc *scanner) postRelease() (n int64, found, ok bool) {
	if len(sc.rest) > 1 && sc.rest[0] == '-' && isDigit(sc.rest[1]) {
		sc.rest = sc.rest[1:]
		n, ok = sc.takeNumber()
		return n, true, ok
	}
	for _, w := range [...]string{"post", "rev", "r"} {
		if n, found, ok = sc.takeWord(w); found || !ok {
			return n, found, ok
		}
	}
	return 0, false, true
}
