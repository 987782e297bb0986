package exchange

// nearby is what stands near before the end of what has come of a stream, as far as it may make a byte there part of
// an escape, or of a terminal's sequence. It costs the same whatever comes. Places are counted from 1; 0: there is none. Bytes that
// are not seen, or may not be, have no place of their own: any number of them may stand within an escape.
type nearby struct {
	came int  // bytes with a place
	last byte // of all bytes

	escape   int // the last ESC
	begun    int // the last byte that begins an escape: & % \ =
	numbered int // the last of these that the number of an ESC may belong to
	brace    int // the last byte that begins an escape that may end in a brace
	end      int // the last byte that may end a piece, but no brace
}

// How far before its end an escape, or a terminal's sequence, may begin that has another in it, in places; and a sequence of which each
// byte is an escape.
const (
	reach    = 4 * maxEscape
	farReach = maxEscape * maxEscape
)

// marks tells which bytes are of interest.
var marks = func() (all [256]bool) { //nolint:gochecknoglobals // a constant
	for _, c := range []byte{0x1b, '\\', '&', '%', '=', leadOfFullWidth, 'b', 'B', '7', '3', '5'} {
		all[c] = true
	}
	for c := range ending {
		all[c] = all[c] || ending[c] || !hasPlace(byte(c))
	}
	return all
}()

// hasPlace tells whether a byte is seen, or begins what is of interest.
func hasPlace(c byte) bool { return ' ' <= c && c <= '~' || c == 0x1b || c == leadOfFullWidth }

// takeByte takes one more byte, and tells whether it ends a piece of structured text.
func (n *nearby) takeByte(c byte) (ends bool) {
	if hasPlace(c) {
		n.came++
	}
	if marks[c] {
		ends = n.markByte(c, n.last, n.came)
	}
	n.last = c
	return ends
}

// lastEnd takes more, and is where the bytes behind the last one begin that ends a piece; below 0: there is none.
func (n *nearby) lastEnd(more []byte) int {
	end, unseen := -1, 0
	for i, c := range more {
		if !marks[c] {
			continue
		}
		if !hasPlace(c) {
			unseen++
			continue
		}
		last := n.last
		if i > 0 {
			last = more[i-1]
		}
		if n.markByte(c, last, n.came+i+1-unseen) {
			end = i + 1
		}
	}
	if len(more) > 0 {
		n.came, n.last = n.came+len(more)-unseen, more[len(more)-1]
	}
	return end
}

// markByte takes a byte at a place, behind another one, and tells whether it ends a piece.
func (n *nearby) markByte(c, last byte, at int) (ends bool) {
	ends = ending[c] && n.endsPiece(c, at)
	switch c {
	case 0x1b:
		n.escape = at
	case '\\', '&', '%':
		n.begun, n.brace = at, at
	case '=':
		n.begun = at
	case leadOfFullWidth:
		n.brace = at
	case '5':
		if last == '=' { // a backslash, in quoted-printable
			n.brace = at - 1
		}
	case 'b', 'B', '7', '3': // of the number of an ESC: 1b, 27 or 33
		if is := c|0x20 == 'b' && last == '1' || c == '7' && last == '2' || c == '3' && last == '3'; is && n.begun > max(n.end, at-maxEscape) {
			n.numbered = n.begun
		}
	}
	if ending[c] && c != '}' {
		n.end = at
	}
	return ends
}

// endsPiece tells whether a byte that may end a piece does. Within a terminal's sequence each of them may stand (ESC [ > 4 m),
// whose ESC may be escaped by its number; and a brace is the end of an escape (\u{41}, \N{LATIN SMALL LETTER A}), whose
// backslash may be escaped itself, if one may have begun near before it. Of these no byte is in the braces that ends a
// piece, but for such a brace.
func (n *nearby) endsPiece(c byte, at int) bool {
	if n.sequenceAt(at) {
		return false
	}
	if c != '}' {
		return true
	}
	from := max(1, at-reach)
	if n.end >= max(1, at-reach/2) {
		from = n.end
	}
	return n.brace < from
}

// sequenceAt tells whether a place may be within a terminal's sequence. Of one whose ESC is escaped by its number the other bytes may be
// as well; then one of these escapes has begun near.
func (n *nearby) sequenceAt(at int) bool {
	from := max(1, at-reach)
	return n.escape >= from || n.numbered >= from || n.numbered >= max(1, at-farReach) && n.begun >= max(1, at-reach/2)
}

// inSequence tells whether the last byte may be within a terminal's sequence, or begin one.
func (n *nearby) inSequence() bool { return n.sequenceAt(n.came) }

// inEscape tells whether the last byte may be within an escape, or begin one.
func (n *nearby) inEscape() bool { return max(n.brace, n.begun) >= max(1, n.came-reach/2) }
