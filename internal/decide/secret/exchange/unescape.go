package exchange

import (
	"html"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of an escape: no escape of a letter is longer, and no name of one.
const (
	maxEscape = 40
	maxName   = 34
)

// begins are the bytes with which an escape may begin, or what is not seen.
var begins = func() (all [256]bool) { //nolint:gochecknoglobals // a constant
	for _, c := range []byte{'%', '\\', '&', '=', 0x7f, 0xc2, 0xcd, 0xd8, 0xdb, 0xdc, 0xe0, 0xe1, 0xe2, 0xe3, 0xef, 0xf0, 0xf3} {
		all[c] = true
	}
	for c := range byte(' ') {
		all[c] = c != '\t' && c != '\n' && c != '\r'
	}
	return all
}()

// nextEscape is where the next escape may begin, or the length.
func nextEscape(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		if !begins[b[i]] {
			continue
		}
		// Of two bytes with which the letters of some languages begin, few characters are not seen.
		if i+1 < len(b) && (b[i] == 0xe3 && b[i+1] != 0x85 || b[i] == 0xe0 && b[i+1] != 0xa3) {
			continue
		}
		return i
	}
	return len(b)
}

// afterNone is where to look on behind what is no escape. Of many backslashes only the last ones
// can belong to one.
func afterNone(b []byte, at int) int {
	end := at
	for end < len(b) && b[end] == '\\' {
		end++
	}
	return nextEscape(b, max(at+1, end-maxEscape/4))
}

// escape reads the escape with which a text begins, as it is meant by who escapes some of
// its characters: for a URL (%41, %u0041), in JSON and the like (\u0041, \u{41}, \x41, \101,
// \N{U+41}, \o{101}, \/, \n, \$, however many backslashes), and in markup (&#65; and &#x41; with
// and without their semicolons, &amp;). A letter of full width is the one that it is drawn like.
// What stands between letters and is not seen means nothing: see unseen. It gives the bytes that
// are meant and how long the escape is; 0: it is none; below 0: it may be the beginning of one.
func escape(b []byte) (meant [4]byte, size, n int) {
	switch b[0] {
	case '%':
		return percent(b)
	case '&':
		return reference(b)
	case '\\':
		return backslash(b)
	}
	if n := unseen(b); n != 0 {
		return meant, 0, n
	}
	meant[0], n = fullWidth(b)
	return meant, min(n, 1), n
}

// readLeniently reads an escape in a text that somebody else has written. Backslashes that escape nothing mean
// nothing: how many there are depends on how often the text was written in another, so they are seen in
// neither what is looked for nor where. Before an escape of another kind they leave that as it is:
// of a quote that is written for JSON and that for markup, \&#34;, a quote is read. Before what is not seen
// they stay: without that, they may escape the letter behind it.
func readLeniently(b []byte) (meant [4]byte, size, n int) {
	meant, size, n = escape(b)
	if b[0] != '\\' || n < 0 {
		return meant, size, n
	}
	run := afterBackslashes(b)
	if n == 0 && run < len(b) && unseen(b[run:]) != 0 {
		return meant, 0, 0
	}
	if n == 0 || b[run] == '&' || b[run] == '%' {
		return meant, 0, run
	}
	return meant, size, n
}

// escapeIn reads an escape in a text that may end here: what is only the beginning of one
// then stands for itself, but for one that needs no end.
func escapeIn(read escapeReader, b []byte, last bool) (meant [4]byte, size, n int) {
	meant, size, n = read(b)
	if n >= 0 || !last {
		return meant, size, n
	}
	const end = ' '
	meant, size, n = read(append(slices.Clone(b[:min(len(b), maxEscape)]), end))
	return meant, size, min(max(n, 0), len(b))
}

// percent reads an escape for a URL.
func percent(b []byte) (meant [4]byte, size, n int) {
	if len(b) > 1 && (b[1] == 'u' || b[1] == 'U') {
		value, n := digits(b, 2, 4)
		return character(value, n)
	}
	value, n := digits(b, 1, 2)
	meant[0] = byte(value)
	return meant, 1, n
}

// backslash reads an escape as programs and JSON have it.
func backslash(b []byte) (meant [4]byte, size, n int) {
	i := 1
	for i < len(b) && b[i] == '\\' && i < maxEscape/4 {
		i++
	}
	if i == len(b) {
		return meant, 0, -1
	}
	switch c := b[i]; c {
	case '\n': // a line that goes on
		return meant, 0, i + 1
	case 'n', 'r', 't', 'b', 'f':
		meant[0] = "\n\r\t\f\f"[strings.IndexByte("nrtbf", c)]
	case 'x':
		value, n := digits(b, i+1, 2)
		if n == 0 {
			return braced(b, i+1)
		}
		return character(value, n)
	case 'u':
		if i+1 < len(b) && b[i+1] == '{' {
			return braced(b, i+1)
		}
		return unicodeEscape(b, i)
	case 'N':
		return namedCharacter(b, i+1)
	case 'o':
		return bracedOctal(b, i+1)
	case 'U':
		value, n := digits(b, i+1, 8)
		return character(value, n)
	case '0', '1', '2', '3':
		return parseOctal(b, i)
	default: // shells and patterns have one before whatever they would read otherwise
		if c < '!' || c > '~' || c == '\\' || letterOrDigit(c) {
			return meant, 0, 0
		}
		meant[0] = c
	}
	return meant, 1, i + 1
}

func letterOrDigit(c byte) bool { return digitValue(c) >= 0 || 'a' <= c|0x20 && c|0x20 <= 'z' }

// braced reads digits in braces.
func braced(b []byte, at int) (meant [4]byte, size, n int) {
	const most = 8 // digits
	value := 0
	for i := at; i <= at+most+1; i++ {
		switch {
		case i == len(b):
			return meant, 0, -1
		case i == at && b[i] == '{':
		case i > at+1 && b[i] == '}':
			return character(value, i+1)
		case i == at || digitValue(b[i]) < 0:
			return meant, 0, 0
		default:
			value = min(value<<4|digitValue(b[i]), utf8.MaxRune+1)
		}
	}
	return meant, 0, 0
}

// unicodeEscape reads four digits behind a u, or twice so many of a character that takes two.
func unicodeEscape(b []byte, at int) (meant [4]byte, size, n int) {
	value, n := digits(b, at+1, 4)
	if n <= 0 || !utf16.IsSurrogate(rune(value)) {
		return character(value, n)
	}
	next := n
	for next < len(b) && b[next] == '\\' && next < n+maxEscape/4 {
		next++
	}
	switch {
	case next == len(b):
		return meant, 0, -1
	case next == n || b[next] != 'u':
		return character(value, n)
	}
	low, end := digits(b, next+1, 4)
	if end < 0 {
		return meant, 0, -1
	}
	if both := utf16.DecodeRune(rune(value), rune(low)); end > 0 && both != utf8.RuneError {
		return character(int(both), end)
	}
	return character(value, n)
}

// parseOctal reads three digits.
func parseOctal(b []byte, at int) (meant [4]byte, size, n int) {
	value := 0
	for i := at; i < at+3; i++ {
		if i == len(b) {
			return meant, 0, -1
		}
		if b[i] < '0' || b[i] > '7' {
			return meant, 0, 0
		}
		value = value*8 + int(b[i]-'0')
	}
	meant[0] = byte(value)
	return meant, 1, at + 3
}

// digits reads so many hexadecimal digits from a place on.
func digits(b []byte, from, many int) (value, n int) {
	for i := from; i < from+many; i++ {
		if i >= len(b) {
			return 0, -1
		}
		d := digitValue(b[i])
		if d < 0 {
			return 0, 0
		}
		value = value<<4 | d
	}
	return value, from + many
}

// character is what an escape of so many bytes means.
func character(value, n int) (meant [4]byte, size, length int) {
	if n <= 0 {
		return meant, 0, n
	}
	return meant, utf8.EncodeRune(meant[:], rune(value)), n
}

// reference reads a character reference of markup.
func reference(b []byte) (meant [4]byte, size, n int) {
	if len(b) < 2 {
		return meant, 0, -1
	}
	if b[1] != '#' {
		return parseNamed(b)
	}
	const most = 30 // digits, of which the first may be zeros
	base, i := 10, 2
	if len(b) > 2 && (b[2] == 'x' || b[2] == 'X') {
		base, i = 16, 3
	}
	value, from := 0, i
	for ; i < len(b) && i < from+most; i++ {
		d := digitValue(b[i])
		if d < 0 || d >= base {
			break
		}
		value = min(value*base+d, utf8.MaxRune+1)
	}
	switch {
	case i == len(b):
		return meant, 0, -1
	case i == from || value > utf8.MaxRune:
		return meant, 0, 0
	case b[i] == ';':
		i++
	}
	return character(value, i)
}

// parseNamed reads a reference by a name. Without its semicolon it is one of the four that
// readers take so.
func parseNamed(b []byte) (meant [4]byte, size, n int) {
	i := 1
	for i < len(b) && i < maxName && letterOrDigit(b[i]) {
		i++
	}
	switch {
	case i == len(b) && i < maxName:
		return meant, 0, -1
	case i < len(b) && b[i] == ';' && i > 1:
		i++
	default:
		i = 1 + slices.Max([]int{0, legacy(b[1:i], "amp"), legacy(b[1:i], "lt"), legacy(b[1:i], "gt"), legacy(b[1:i], "quot")})
	}
	if i == 1 {
		return meant, 0, 0
	}
	said := string(b[:i])
	if text := html.UnescapeString(said); text != said && len(text) <= len(meant) {
		return [4]byte([]byte(text + "\x00\x00\x00\x00")), len(text), i
	}
	return meant, 0, 0
}

// legacy is the length of a name with which a text begins, 0 if it does not.
func legacy(b []byte, name string) int {
	if len(b) >= len(name) && (string(b[:len(name)]) == name) {
		return len(name)
	}
	return 0
}

func digitValue(c byte) int {
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
