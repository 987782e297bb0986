package exchange

// leastFound is the least number of bytes of a text that a caller's own finder looks for where
// it is encoded.
const leastFound = 12

// Masked is a text in which what find visits is masked, byte by byte, in all writings that are
// read in hosts' answers: as it is, escaped, encoded, and in one another. find is called with
// each of these readings of the text, and visits where in it something is.
func Masked(text string, find func(b []byte, visit func(from, to int))) string {
	l := lookThrough(found(find), []byte(text), true)
	defer l.forgetPiece()
	if len(l.found) == 0 {
		return text
	}
	out := []byte(text)
	for _, s := range l.found {
		for i := s.from; i < min(s.to, len(out)); i++ {
			out[i] = '*'
		}
	}
	return string(out)
}

// found is a finder in texts that are whole.
type found func(b []byte, visit func(from, to int))

func (f found) findNeedles(b []byte, visit func(from, to int, of string)) {
	if len(b) > 0 {
		f(b, func(from, to int) {
			if from < to && to <= len(b) {
				visit(from, to, "")
			}
		})
	}
}

func (found) lengthBegun([]byte) int { return 0 }

func (found) shortest() int { return leastFound }
