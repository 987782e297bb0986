package exchange

import "unicode/utf8"

// leastHidden is the least number of bytes that a needle takes in any writing that is read anew, in which all is
// UTF-8; 0: that is not so. Needles of other letters than ASCII are written in other charsets as well.
func (n *needles) leastHidden() int {
	if n.foreign {
		return 0
	}
	return n.least
}

// leastHidden implements finder: of texts that are known by their form alone, nothing is known of this.
func (found) leastHidden() int { return 0 }

// legible is a view without what can't be part of a needle's writing: every escape and every encoding is ASCII, and
// what is unseen between letters is UTF-8, so what is no UTF-8 ends one, and what is too short between two
// such bytes is none. (A character that is not seen may itself be parted by an escape: see partsNext.) Of compressed files and of digests that were decoded nearly nothing is left. ok tells
// whether anything is. It costs one pass over a view; to read a view anew costs thirty.
func (l *looker) legible(v view, least, depth int) (text view, ok bool) {
	u := &l.texts[depth]
	u.b, u.from, u.to = u.b[:0], u.from[:0], u.to[:0]
	end := len(v.b)
	for begin := 0; begin < end; {
		stop := illegible(v.b, begin, v.open)
		switch {
		case begin == 0 && stop == end:
			return v, v.open || end >= least
		case stop == end:
			if v.open || stop-begin >= least {
				u.addSame(v, begin, stop)
			}
			return view{u.b, u.from, u.to, v.open, v.unescaped, v.decoded, v.foreign}, len(u.b) > 0
		case stop-begin >= least:
			u.addSame(v, begin, stop+1) // with the byte that ends it
		}
		begin = stop + 1
	}
	return view{u.b, u.from, u.to, false, v.unescaped, v.decoded, v.foreign}, len(u.b) > 0
}

// illegible is where the next byte is from a place on that is no UTF-8, or the length. In a text that goes on,
// the beginning of a character at its end is none.
func illegible(b []byte, from int, open bool) int {
	parted := from - 1 // how far the bytes of a character may come that are not all beside one another
	for i := from; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		n := characterSize(b[i:])
		switch {
		case n > 0:
			i += n
		case n < 0 && open:
			return len(b)
		case begins[b[i]] && partsNext(b[i+1:], open):
			parted = i + maxParted
			i++
		case !utf8.RuneStart(b[i]) && (i <= parted || i-from >= len("%e2") && behindWritten(b[from:i])):
			i++
		default:
			return i
		}
	}
	return len(b)
}

// behindWritten tells whether a text of three bytes at least ends near behind an escape, as which the first bytes of a character may stand: %e2\x80\x8b.
func behindWritten(b []byte) bool {
	for i := len(b) - len("%e2"); i >= max(0, len(b)-maxParted); i-- {
		if c := b[i]; c == '%' || c == '\\' || c == '&' || c == '=' {
			return true
		}
	}
	return false
}

// characterSize is the length of the character with which a text begins that is no ASCII; 0: there is none; below 0: it may be
// the beginning of one. Of bytes at random nearly all are told by the first two.
func characterSize(b []byte) int {
	const least, most = 0xc2, 0xf4 // first bytes of such a character
	if b[0] < least || b[0] > most || len(b) > 1 && utf8.RuneStart(b[1]) {
		return 0
	}
	c, n := utf8.DecodeRune(b)
	switch {
	case c != utf8.RuneError || n > 1:
		return n
	case !utf8.FullRune(b):
		return -1
	}
	return 0
}

// maxParted is how far the bytes of a character that is not seen may be apart: three are escaped, and escaped again.
const maxParted = 3 * maxEscape

// partsNext tells whether the bytes of a character, of which the first stands before, may go on behind an escape or
// something that is not seen, or as one: \xe2%80%8b.
func partsNext(b []byte, open bool) bool {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return b[i] < utf8.RuneSelf && begins[b[i]]
		}
	}
	return open && len(b) < utf8.UTFMax
}
