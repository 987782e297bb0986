package ui

import (
	"fmt"
	"strings"
)

// Sheet is text of named lines, in two columns. All values are made printable.
type Sheet struct{ b strings.Builder }

// String is the text so far.
func (s *Sheet) String() string { return s.b.String() }

// Raw adds text of our own as it is: it must be printable.
func (s *Sheet) Raw(text string) { s.b.WriteString(text) }

// Head begins a part with printable words in one line.
func (s *Sheet) Head(words ...string) {
	s.b.WriteString(Printable(strings.Join(words, "  ")) + "\n")
}

const sheetIndent = 16

// Line is a value with its name; one that is too long has two spaces behind it.
func (s *Sheet) Line(name, format string, args ...any) {
	if len(name) > sheetIndent-4 {
		name += "  "
	}
	_, _ = fmt.Fprintf(&s.b, "  %-*s%s\n", sheetIndent-2, name, Printable(fmt.Sprintf(format, args...)))
}

// Text is line for a value that may be missing.
func (s *Sheet) Text(name, value string) {
	if value != "" {
		s.Line(name, "%s", value)
	}
}

// List names its first value only.
func (s *Sheet) List(name string, values []string) {
	for i, value := range values {
		if i > 0 {
			name = ""
		}
		s.Line(name, "%s", value)
	}
}

// Words is our own text, broken into lines.
func (s *Sheet) Words(text string) {
	const width = 94
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			_, _ = fmt.Fprintf(&s.b, "  %s\n", line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	_, _ = fmt.Fprintf(&s.b, "  %s\n", line)
}

// Unknown is what is told where nothing is known.
const Unknown = "unknown"

// OrUnknown is line for a value that may not be known.
func (s *Sheet) OrUnknown(name, value string) {
	if value == "" {
		value = Unknown
	}
	s.Line(name, "%s", value)
}
