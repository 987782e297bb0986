package exchange

import "unicode/utf8"

// hides is the least number of bytes that a needle takes in any writing that is read anew, in which all is
// UTF-8; 0: that is not so. Needles of other letters than ASCII are written in other charsets as well.
func (n *needles) hides() int {
	if n.foreign {
		return 0
	}
	return n.least
}

// hides implements finder: of texts that are known by their form alone, nothing is known of this.
func (found) hides() int { return 0 }

// legible is a view without what can't be part of a needle's writing: every escape and every encoding is ASCII, and
// what is unseen between letters is UTF-8, so what is no UTF-8 ends one, and what is too short between two
// such bytes is none. Of compressed files and of digests that were decoded nearly nothing is left. ok tells
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
				u.same(v, begin, stop)
			}
			return view{u.b, u.from, u.to, v.open, v.unescaped, v.decoded, v.foreign}, len(u.b) > 0
		case stop-begin >= least:
			u.same(v, begin, stop+1) // with the byte that ends it
		}
		begin = stop + 1
	}
	return view{u.b, u.from, u.to, false, v.unescaped, v.decoded, v.foreign}, len(u.b) > 0
}

// illegible is where the next byte is from a place on that is no UTF-8, or the length. In a text that goes on,
// the beginning of a character at its end is none.
func illegible(b []byte, from int, open bool) int {
	for i := from; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		c, n := utf8.DecodeRune(b[i:])
		switch {
		case c != utf8.RuneError || n > 1:
			i += n
		case open && !utf8.FullRune(b[i:]):
			return len(b)
		default:
			return i
		}
	}
	return len(b)
}
