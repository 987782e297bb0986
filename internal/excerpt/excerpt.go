// Package excerpt shortens text that may be long, for a sentence, a record or a line.
package excerpt

import "unicode/utf8"

const ellipsis = "..."

// Of is s if it has at most so many bytes, else its beginning with "..." at the end, which
// together have no more. It cuts no character in two. It makes nothing printable.
func Of(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := max(0, most-len(ellipsis))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis[:min(most, len(ellipsis))]
}
