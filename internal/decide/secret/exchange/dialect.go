package exchange

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapeReader reads the escape with which a text begins: see escape.
type escapeReader func(b []byte) (meant [4]byte, size, n int)

// dialects are readers of escapes that mean something else to escape, or nothing, as far as a text may
// have any of them. Each reads a text by itself: the same digits are another letter to each. A line's
// end of quoted-printable may stand within any other escape, or a terminal's sequence, so there is one that takes these out and
// nothing else. Of a text that goes on (open), the next bytes may make one of its last bytes: such a reader sees
// an escape unfinished there that to the others is none.
func dialects(b []byte, open bool) (all []escapeReader) {
	if breaksAnEscape(b, "=\n") || breaksAnEscape(b, "=\r\n") || open && (endBreaksAnEscape(b, "=") || endBreaksAnEscape(b, "=\r")) {
		all = append(all, readSoftEnd)
	}
	if bytes.Contains(b, []byte("\x1b[")) {
		all = append(all, readNoSequence)
	}
	if spokenOtherwise(b) || open && len(b) > 0 && (b[len(b)-1] == '\\' || b[len(b)-1] == '=') {
		all = append(all, readPair, readStyle, readOctal)
	}
	return all
}

// spokenOtherwise tells whether a text has what may be an escape of a dialect by its digits.
func spokenOtherwise(b []byte) bool {
	for i := range len(b) - 1 {
		if (b[i] == '\\' || b[i] == '=') && digitValue(b[i+1]) >= 0 {
			return true
		}
	}
	return false
}

// breaksAnEscape tells whether a line's end of quoted-printable stands where it may be within another
// escape.
func breaksAnEscape(b []byte, end string) bool {
	for at := 0; ; at += len(end) {
		next := bytes.Index(b[at:], []byte(end))
		if next < 0 {
			return false
		}
		at += next
		if behindAnEscape(b, at) {
			return true
		}
	}
}

// endBreaksAnEscape does what breaksAnEscape does, for the beginning of such a line's end at the text's end.
func endBreaksAnEscape(b []byte, begun string) bool {
	return bytes.HasSuffix(b, []byte(begun)) && behindAnEscape(b, len(b)-len(begun))
}

// behindAnEscape tells whether a place may be within an escape or a terminal's sequence, or right behind one.
func behindAnEscape(b []byte, at int) bool {
	return bytes.ContainsAny(b[max(0, at-maxEscape):at], "&%\\\x1b")
}

// readNoSequence reads, as readLeniently does, where no terminal reads: what only looks as if it began a sequence has
// nothing of what stands behind it.
func readNoSequence(b []byte) (meant [4]byte, size, n int) {
	if b[0] == 0x1b {
		return meant, 0, 1
	}
	return readLeniently(b)
}

// readSoftEnd reads a line's end of quoted-printable, which means nothing.
func readSoftEnd(b []byte) (meant [4]byte, size, n int) {
	if b[0] != '=' {
		return meant, 0, 0
	}
	return meant, 0, softEnd(b)
}

// readPair reads two digits, as quoted-printable (=2D) and directories (\2d) have them.
func readPair(b []byte) (meant [4]byte, size, n int) {
	at := 1
	switch b[0] {
	case '=':
		if n := softEnd(b); n != 0 && len(b) > 1 {
			return meant, 0, n
		}
	case '\\':
		if at = afterBackslashes(b); at == len(b) {
			return meant, 0, -1
		}
	default:
		return meant, 0, 0
	}
	value, n := digits(b, at, 2)
	meant[0] = byte(value)
	return meant, 1, n
}

// readStyle reads one to six digits with the blank that ends them, as style sheets have them.
func readStyle(b []byte) (meant [4]byte, size, n int) {
	if b[0] != '\\' {
		return meant, 0, 0
	}
	const most = 6
	at, value := afterBackslashes(b), 0
	i := at
	for ; i < len(b) && i < at+most && digitValue(b[i]) >= 0; i++ {
		value = value<<4 | digitValue(b[i])
	}
	switch {
	case i == len(b):
		return meant, 0, -1
	case i == at || value > utf8.MaxRune:
		return meant, 0, 0
	case b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n':
		i += 2
	case strings.IndexByte(" \t\n\r\f", b[i]) >= 0:
		i++
	}
	return character(value, i)
}

// readOctal reads one to three octal digits, as shells and printf take them.
func readOctal(b []byte) (meant [4]byte, size, n int) {
	if b[0] != '\\' {
		return meant, 0, 0
	}
	const most = 3
	at, value := afterBackslashes(b), 0
	i := at
	for ; i < len(b) && i < at+most && '0' <= b[i] && b[i] <= '7'; i++ {
		value = value<<3 | int(b[i]-'0')
	}
	switch {
	case i == len(b) && i < at+most:
		return meant, 0, -1
	case i == at || value > 0xff:
		return meant, 0, 0
	}
	meant[0] = byte(value)
	return meant, 1, i
}

// afterBackslashes is the place behind the backslashes with which a text begins: of a text in a
// text there are two for each, and so on.
func afterBackslashes(b []byte) int {
	i := 0
	for i < len(b) && b[i] == '\\' && i < maxEscape/4 {
		i++
	}
	return i
}

// softEnd is the length of a line's end of quoted-printable that means nothing; 0: there is none;
// below 0: it may be the beginning of one.
func softEnd(b []byte) int {
	switch head := string(b[:min(len(b), len("=\r\n"))]); {
	case strings.HasPrefix(head, "=\n"):
		return len("=\n")
	case head == "=\r\n":
		return len("=\r\n")
	case head == "=" || head == "=\r":
		return -1
	}
	return 0
}

// unseen is the length of what stands at a text's beginning without being seen: control
// characters (the zero bytes of UTF-16 and UTF-32 are some), what sets a terminal's colours,
// characters that no writing shows (soft hyphens, those without width, variation selectors, marks
// of direction, fillers), and a line's end of quoted-printable. 0: there is none; below 0: it may
// be the beginning of one.
func unseen(b []byte) int {
	switch c := b[0]; {
	case c == '=':
		return softEnd(b)
	case c == 0x1b:
		return controlSequence(b)
	case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f:
		return 1
	case c < utf8.RuneSelf:
		return 0
	case !utf8.FullRune(b):
		return -1
	}
	c, n := utf8.DecodeRune(b)
	switch {
	case unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return n
	case 0x80 <= c && c < 0xa0 && c != 0x85:
		return n
	}
	return 0
}

// controlSequence is the length of what a terminal does not show (ECMA-48: ESC [ ... m); 1 of what
// only begins as one. A byte with which an escape of another kind begins is none of it, though by that
// standard it could be: no program writes such a sequence, and the escape's letter would be lost.
func controlSequence(b []byte) int {
	for i := 1; i < maxEscape; i++ {
		switch {
		case i == len(b):
			return -1
		case i == 1 && b[i] != '[':
			return 1
		case kindOfByte(b[i]) != ofOthers:
			return i
		case i > 1 && '@' <= b[i] && b[i] <= '~':
			return i + 1
		case i > 1 && (b[i] < ' ' || b[i] > '?'):
			return 1
		}
	}
	return 1
}

// leadOfFullWidth is the first byte of a letter of full width.
const leadOfFullWidth = 0xef

// fullWidth is the ASCII letter for one of full width, and its length; 0: it is none.
func fullWidth(b []byte) (letter byte, n int) {
	const first, last = 0xff01, 0xff5e
	if b[0] != leadOfFullWidth {
		return 0, 0
	}
	c, n := utf8.DecodeRune(b)
	if c < first || c > last {
		return 0, 0
	}
	return byte(c - first + '!'), n
}

// namedCharacter reads a character by its number or by its name in braces: \N{U+41},
// \N{LATIN SMALL LETTER A}. The names are those of ASCII.
func namedCharacter(b []byte, at int) (meant [4]byte, size, n int) {
	end := at
	for ; end < len(b) && b[end] != '}'; end++ {
		if end-at > maxName || end == at && b[end] != '{' || end > at && b[end] != '+' && b[end] != ' ' && b[end] != '-' && !letterOrDigit(b[end]) {
			return meant, 0, 0
		}
	}
	switch end {
	case len(b):
		return meant, 0, -1
	case at: // a brace that closes what none has opened
		return meant, 0, 0
	}
	name, numbered := strings.CutPrefix(strings.ToUpper(string(b[at+1:end])), "U+")
	if numbered {
		const most = 6
		if name == "" || len(name) > most {
			return meant, 0, 0
		}
		value, n := digits([]byte(name), 0, len(name))
		if n <= 0 || value > utf8.MaxRune {
			return meant, 0, 0
		}
		return character(value, end+1)
	}
	if meant[0] = characterNames[name]; meant[0] == 0 {
		return meant, 0, 0
	}
	return meant, 1, end + 1
}

// bracedOctal reads octal digits in braces, as Perl has them.
func bracedOctal(b []byte, at int) (meant [4]byte, size, n int) {
	const most = 7 // digits
	value := 0
	for i := at; i <= at+most+1; i++ {
		switch {
		case i == len(b):
			return meant, 0, -1
		case i == at && b[i] == '{':
		case i > at+1 && b[i] == '}':
			return character(value, i+1)
		case i == at || b[i] < '0' || b[i] > '7':
			return meant, 0, 0
		default:
			value = min(value<<3|int(b[i]-'0'), utf8.MaxRune+1)
		}
	}
	return meant, 0, 0
}

// characterNames are the names of what is seen of ASCII, as Unicode has them.
var characterNames = func() map[string]byte { //nolint:gochecknoglobals // a constant
	all := map[string]byte{
		"SPACE": ' ', "EXCLAMATION MARK": '!', "QUOTATION MARK": '"', "NUMBER SIGN": '#', "DOLLAR SIGN": '$', "PERCENT SIGN": '%', "AMPERSAND": '&', "APOSTROPHE": '\'',
		"LEFT PARENTHESIS": '(', "RIGHT PARENTHESIS": ')', "ASTERISK": '*', "PLUS SIGN": '+', "COMMA": ',', "HYPHEN-MINUS": '-', "FULL STOP": '.', "SOLIDUS": '/', "COLON": ':', "SEMICOLON": ';',
		"LESS-THAN SIGN": '<', "EQUALS SIGN": '=', "GREATER-THAN SIGN": '>', "QUESTION MARK": '?', "COMMERCIAL AT": '@', "LEFT SQUARE BRACKET": '[', "REVERSE SOLIDUS": '\\',
		"RIGHT SQUARE BRACKET": ']', "CIRCUMFLEX ACCENT": '^', "LOW LINE": '_', "GRAVE ACCENT": '`', "LEFT CURLY BRACKET": '{', "VERTICAL LINE": '|', "RIGHT CURLY BRACKET": '}', "TILDE": '~',
	}
	for i, name := range []string{"ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"} {
		all["DIGIT "+name] = '0' + byte(i)
	}
	for c := byte('A'); c <= 'Z'; c++ {
		all["LATIN CAPITAL LETTER "+string(rune(c))] = c
		all["LATIN SMALL LETTER "+string(rune(c))] = c | 0x20
	}
	return all
}()
