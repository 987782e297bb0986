package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes one line of s that no terminal takes for an instruction:
// control characters (C0 and C1), line breaks, what reorders or hides text, and
// bytes that are no UTF-8 become visible escapes.
func Printable(s string) string { return escape(s, "") }

// PrintableText is Printable for text of our own of several lines.
func PrintableText(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hostile(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hostile(r) && !strings.ContainsRune(keep, r):
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

// hostile reports what is not to reach a terminal: controls, formats (which
// hold the bidirectional overrides and the invisible tag characters), line and
// paragraph separators, surrogates and private use.
func hostile(r rune) bool {
	return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp)
}

// printableJSON does the same to JSON: in it only strings can hold such
// characters, and there an escape means the same character. Go's encoder
// leaves DEL, C1 and formats as they are.
func printableJSON(data []byte) string {
	var b strings.Builder
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\ufffd`)
		case hostile(r) && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case hostile(r) && !strings.ContainsRune("\n\t", r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}
