package config

import (
	"regexp"
	"strings"
)

// plainly says what the YAML decoder found without the names of Go's types.
func plainly(err error) string {
	text := err.Error()
	for _, r := range []struct{ from, to string }{
		{`^yaml: `, ""},
		{`unmarshal errors:\s*`, ""},
		{`construct errors:\s*`, ""},
		{`field (\S+) not found in type \S+`, `there is no key "$1"`},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?u?int\d*\b`, "$1 is no whole number"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?float\d*\b`, "$1 is no number"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?bool\b`, "$1 is neither true nor false"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \*?string\b`, "$1 is no text"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \[\]\S+`, "$1 is no list"},
		{`cannot (?:unmarshal|construct) !!\w+( \x60[^\x60]*\x60)? into \S+`, "$1 is no mapping of keys"},
		{`(line \d+:)  +`, "$1 "},
		{`(line \d+:) is `, "$1 it is "},
		{`\s*\n\s*`, "; "},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	return strings.TrimSpace(text)
}
