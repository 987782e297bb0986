package exchange

import "strings"

// unescaper reads a stream as it is meant by who escapes some of its characters: for a URL
// (%41), in JSON and the like (\u0041, \x41, \/, however many backslashes), and in markup
// (&#65; and &#x41;). What is no escape stays. It does so twice, so that escapes of escapes
// are read, too. The zero value is at the beginning of a stream.
type unescaper struct{ first, second unescaping }

// take takes more of the stream in, and gives what it is read as; same tells that this is
// what was taken in. At the end (last) nothing is kept. The result is the caller's until the
// next call.
func (u *unescaper) take(more []byte, last bool) (meant []byte, same bool) {
	once, first := u.first.take(more, last)
	meant, second := u.second.take(once, last)
	return meant, first && second
}

// unescaped is a whole text, as unescaper reads it.
func unescaped(text string) string {
	if !strings.ContainsAny(text, `%\&`) {
		return text
	}
	meant, _ := (&unescaper{}).take([]byte(text), true)
	return string(meant)
}

// unescaping reads escapes once.
type unescaping struct {
	kept []byte // the beginning of an escape
	out  []byte
}

// maxEscape bounds what is kept for its end: no escape of a letter is longer.
const maxEscape = 16

func (u *unescaping) take(more []byte, last bool) (meant []byte, same bool) {
	u.out = u.out[:0]
	buf := more
	if len(u.kept) > 0 {
		u.kept = append(u.kept, more...)
		buf = u.kept
	}
	same = len(u.kept) == 0
	from := 0 // what is before it is in out
	for i := nextEscape(buf, 0); i < len(buf); {
		c, n := escape(buf[i:])
		switch {
		case n > 0:
			u.out = append(append(u.out, buf[from:i]...), c)
			from, same = i+n, false
			i = nextEscape(buf, from)
		case n < 0 && !last && len(buf)-i < maxEscape:
			u.out = append(u.out, buf[from:i]...)
			u.kept = append(u.kept[:0], buf[i:]...)
			return u.out, false
		default:
			i = nextEscape(buf, i+1)
		}
	}
	if same {
		return more, true
	}
	u.out = append(u.out, buf[from:]...)
	u.kept = u.kept[:0]
	return u.out, false
}

// nextEscape is where the next escape may begin, or the length.
func nextEscape(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		if c := b[i]; c == '%' || c == '\\' || c == '&' {
			return i
		}
	}
	return len(b)
}

// escape reads the escape with which a text begins: what it means and how long it is; 0: it
// is none; below 0: it may be the beginning of one. A character beyond ASCII is a 0.
func escape(b []byte) (meant byte, n int) {
	switch b[0] {
	case '%':
		return digits(b, 1, 2)
	case '&':
		return reference(b)
	}
	i := 1
	for i < len(b) && b[i] == '\\' && i < maxEscape/2 {
		i++
	}
	if i == len(b) {
		return 0, -1
	}
	switch b[i] {
	case '/':
		return '/', i + 1
	case 'x':
		return digits(b, i+1, 2)
	case 'u':
		return digits(b, i+1, 4)
	}
	return 0, 0
}

// digits reads so many hexadecimal digits from a place on.
func digits(b []byte, from, many int) (meant byte, n int) {
	value := 0
	for i := from; i < from+many; i++ {
		if i == len(b) {
			return 0, -1
		}
		d := digit(b[i])
		if d < 0 {
			return 0, 0
		}
		value = value<<4 | d
	}
	return ascii(value), from + many
}

// reference reads a numeric character reference.
func reference(b []byte) (meant byte, n int) {
	const most = 8 // digits
	base, i := 10, 2
	switch {
	case len(b) < 2:
		return 0, -1
	case b[1] != '#':
		return 0, 0
	case len(b) > 2 && (b[2] == 'x' || b[2] == 'X'):
		base, i = 16, 3
	}
	value := 0
	for from := i; i < len(b) && i < from+most; i++ {
		d := digit(b[i])
		if d < 0 || d >= base {
			if b[i] == ';' && i > from {
				return ascii(value), i + 1
			}
			return 0, 0
		}
		value = min(value*base+d, 1<<20)
	}
	if i == len(b) {
		return 0, -1
	}
	return 0, 0
}

func ascii(value int) byte {
	if value > 0x7f {
		return 0
	}
	return byte(value)
}

func digit(c byte) int {
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
