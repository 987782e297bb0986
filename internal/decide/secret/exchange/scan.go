package exchange

import "math/bits"

// hush is the least of a needle that is held back when a stream has no more for now, where the beginning of one
// decides that: less than that is found too often in what is something else.
const hush = 4

// pieceSize bounds what of a stream is looked through at a time, in bytes: its views take
// many times as much.
const pieceSize = 8 << 10

// Of a stream so many bytes are kept at most while something may have begun in them, beside so
// many for each byte of the longest needle: as much as an escape of an escape is long. Without
// an end, blanks behind base64 would have all of the stream kept, and looked through again with
// each piece.
const (
	keptAlways  = 4 << 10
	keptPerByte = 28
)

// leastBound is the least number of bytes of a stream that may be held back: enough for a needle of 438 bytes in
// any writing, so that runs with shorter ones hold back as much as each other, and as one without any.
const leastBound = 16 << 10

// mask is what each byte of a needle becomes, so that a text keeps its length, whatever its
// encoding.
const mask = 'x'

// scan looks for needles in a stream, across the borders of what is read at a time, in each
// of the ways in which it can be read: see looker. It keeps two things apart: what the next
// piece has to be read with, of which nobody sees how much it is, and what is not handed on yet.
type scan struct {
	needles *needles
	// live gives the needles as of now, before each piece; nil: they stay the same. A text can
	// only be in what was read after somebody could know it, so none begins in what has passed.
	live func() *needles
	// tail decides how much of the end is held back, by nothing that is secret.
	tail tail
	// known tells that whoever sees the stream may know the needles. The beginning of one is held back then, and
	// nothing else.
	known bool

	buf   []byte // what a needle may have begun in, as it came
	begun int    // of buf: how many bytes at its end are the beginning of one; 0: fewer than hush are
	// queue has what is not handed on, up to the same end, masked as far as needles were found in it. Of its bytes,
	// passed were handed on by earlier calls, and given are up to the end of what the last call has handed on.
	queue         []byte
	passed, given int
}

// takeMore takes more of the stream in. It gives what can be passed on, in which each needle
// is masked by as many letters, and what one that was found is of, "" if there is none. The
// result is the caller's until the next call. At the end (last) nothing is held.
func (s *scan) takeMore(more []byte, last bool) (out []byte, of string) {
	s.renewNeedles()
	if len(s.needles.all) == 0 && (s.known || s.tail.off) {
		return more, ""
	}
	s.forgetGiven()
	if !last {
		s.tail.takeMore(more, s.needles)
	}
	came := len(more)
	for len(more) > pieceSize {
		if hit := s.scanPiece(more[:pieceSize], false); hit != "" {
			of = hit
		}
		more = more[pieceSize:]
	}
	if hit := s.scanPiece(more, last); hit != "" {
		of = hit
	}
	held := s.begun
	if !s.known {
		held = s.tail.holdBytes(came, min(len(s.queue)-s.passed, s.boundHeld()), last)
	}
	s.given = max(len(s.queue)-held, s.passed)
	return s.queue[s.passed:s.given], of
}

// heldBytes is how many bytes are held back.
func (s *scan) heldBytes() int { return len(s.queue) - s.given }

// releaseBytes hands on the first bytes of those that are held back, although no more has come. The result is as
// that of take.
func (s *scan) releaseBytes(n int) []byte {
	s.forgetGiven()
	s.given = min(s.passed+n, len(s.queue))
	s.tail.holdBytes(0, s.heldBytes(), false)
	return s.queue[s.passed:s.given]
}

// forgetGiven drops from the queue what was handed on. It moves no more than that.
func (s *scan) forgetGiven() {
	if s.passed = s.given; s.passed >= len(s.queue)-s.passed {
		s.queue = append(s.queue[:0], s.queue[s.passed:]...)
		s.passed, s.given = 0, 0
	}
}

// boundHeld is how many bytes may be held back at most: as many as a needle takes in any writing, rounded so that it
// tells no needle's length.
func (s *scan) boundHeld() int {
	return max(leastBound, 1<<bits.Len(uint(keptAlways+keptPerByte*s.needles.most-1)))
}

// beginning is what a needle of one of these names is of that begins within the first bytes of what is held
// back, or before, and goes on up to its end; "": none does.
func (s *scan) beginning(names []string, first int) (of string) {
	for _, name := range names {
		needles := s.needles.namedNeedles(name)
		if len(needles.all) == 0 {
			continue
		}
		l := lookThrough(needles, s.buf, false)
		begun := len(s.buf) - l.hold
		l.forgetPiece()
		if begun > s.heldBytes()-first {
			return name
		}
	}
	return ""
}

// renewNeedles has the needles be those of now. Without any it keeps those that it has: they are
// forgotten only once nobody waits for the stream.
func (s *scan) renewNeedles() {
	if s.live == nil {
		return
	}
	if now := s.live(); s.needles == nil || len(now.all) > 0 {
		s.needles = now
	}
}

func (s *scan) scanPiece(more []byte, last bool) (of string) {
	s.queue = append(s.queue, more...)
	if len(s.needles.all) == 0 {
		return ""
	}
	s.buf = append(s.buf, more...)
	l := lookThrough(s.needles, s.buf, last)
	defer l.forgetPiece()
	bound := len(s.buf) - keptAlways - keptPerByte*s.needles.most
	hold, keep := max(l.hold, bound), max(min(l.keep, l.hold), bound)
	if last {
		hold, keep = len(s.buf), len(s.buf)
	}
	begin := len(s.queue) - len(s.buf) // of buf in queue, below passed where it was handed on
	for _, found := range l.found {
		for i := max(found.from, s.passed-begin); i < found.to; i++ {
			s.queue[begin+i] = mask
		}
	}
	s.begun = len(s.buf) - hold
	s.buf = append(s.buf[:0], s.buf[keep:]...)
	return l.of
}
