// Package text makes text that others wrote fit for a person: printable on a terminal, in a
// message or in a sentence, and shortened to a bound.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes one line of s that no terminal takes for an instruction:
// control characters (C0 and C1), line breaks, what reorders or hides text, and
// bytes that are no UTF-8 become visible escapes.
func Line(s string) string { return escape(s, "") }

// Name is Line for the name of something that others made: a file, a link's target, a branch. A
// backslash in it is written twice, so that no two names are written alike: one that holds a backslash and
// an n is not taken for one that holds a line's end. Letters that look like others stay. Line leaves the result as it is.
func Name(s string) string { return Line(strings.ReplaceAll(s, `\`, `\\`)) }

// Lines is Line for text of our own that has several lines: it keeps line breaks and tabs.
func Lines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return Hostile(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Hostile(r) && !strings.ContainsRune(keep, r):
			b.WriteString(visible(r))
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func visible(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Hostile reports what is not to reach a terminal: controls, formats (which
// hold the bidirectional overrides and the invisible tag characters), line and
// paragraph separators, surrogates and private use.
func Hostile(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp)
}
