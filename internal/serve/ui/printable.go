package ui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Printable is text.Line: one line of s that no terminal takes for an instruction.
func Printable(s string) string { return text.Line(s) }

// PrintableName is text.Name, for names from inside: one line, and no two are written alike.
func PrintableName(s string) string { return text.Name(s) }

// PrintableText is text.Lines, for text of our own of several lines.
func PrintableText(s string) string { return text.Lines(s) }

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
		case text.Hostile(r) && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case text.Hostile(r) && !strings.ContainsRune("\n\t", r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}
