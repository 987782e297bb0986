// Package pathseg reads segments of paths as servers may read them that are not particular:
// they decode more than once, trim spaces, and take characters for others. It is pure.
package pathseg

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold is a segment of a path as it is sent, as the least particular server reads it: decoded,
// in the one form of characters that look alike, without parameters, spaces and what has no
// width, in lower case. wrong says in a few words why servers would not agree about it.
func Fold(segment string) (folded, wrong string) {
	text := segment
	for range 3 {
		decoded := unescape(text)
		if decoded == text {
			break
		}
		text = decoded
	}
	if !utf8.ValidString(text) {
		return "", "escapes what is no UTF-8"
	}
	plain := norm.NFKC.String(text)
	switch {
	case strings.ContainsAny(plain, bestFit) || gainsSigns(text, plain, `/\`):
		return "", "has a character that some servers take for a slash"
	case strings.ContainsRune(plain, arabicPercent) || gainsSigns(text, plain, "?#%;"):
		return "", "has a character that some servers take for ?, #, % or ;"
	}
	name, _, _ := strings.Cut(plain, ";")
	folded = strings.Map(func(c rune) rune {
		switch {
		case c == '+' || unicode.IsSpace(c) || unicode.IsControl(c) || unseen(c):
			return -1
		case c == '\u3002': // of which NFKC makes no dot, as others do
			return '.'
		}
		return unicode.ToLower(c)
	}, name)
	return folded, ""
}

// gainsSigns tells whether a text has more of one of some signs in it than it had before it was folded.
func gainsSigns(before, after, signs string) bool {
	for i := range len(signs) {
		if strings.Count(after, signs[i:i+1]) > strings.Count(before, signs[i:i+1]) {
			return true
		}
	}
	return false
}

// arabicPercent is a character of which Windows makes a percent sign, as it makes slashes of bestFit. NFKC makes none of it.
const arabicPercent = '\u066a'

// bestFit are the characters, in NFKC, of which Windows makes a slash or a backslash where a program
// asks for its own code page (1252: fraction slash, division slash, set minus, the overlays; 932: the
// yen sign; 949: the won sign), and others that look like one.
const bestFit = "\u2044\u2215\u2216\u0337\u0338\u20e5\u00a5\u20a9\u29f5\u29f8\u29f9\u2571\u2572\u27cb\u27cd"

// unseen tells whether a character is nothing that is seen: Unicode's ignorable ones (formats,
// variation selectors, joiners, fillers), and the one of Braille that has no dot.
func unseen(c rune) bool {
	return c == '\u2800' || unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Dots tells whether a folded segment is the place itself, or one above it. Marks that stand
// over a dot, or around it, are lost where a server keeps letters alone.
func Dots(folded string) bool {
	return folded != "" && strings.TrimFunc(folded, func(c rune) bool { return c == '.' || unicode.In(c, unicode.Mn, unicode.Me) }) == "" && strings.Contains(folded, ".")
}

// unescape decodes once. A bad escape stands for itself.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := hexValue(s[i+1]), hexValue(s[i+2])
			if high >= 0 && low >= 0 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
