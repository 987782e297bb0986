package exchange

// hush is the least of a needle that is held back when a stream has no more for now. Less
// than that is found too often in what is something else, and a client that waits for it
// would wait for ever; if it was a needle's beginning after all, only the rest is masked.
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

// mask is what each byte of a needle becomes, so that a text keeps its length, whatever its
// encoding.
const mask = 'x'

// scan looks for needles in a stream, across the borders of what is read at a time, in each
// of the ways in which it can be read: see looker.
type scan struct {
	needles *needles
	// live gives the needles as of now, before each piece; nil: they stay the same. A text can
	// only be in what was read after somebody could know it, so none begins in what has passed.
	live func() *needles

	buf    []byte // passed on bytes that a needle may begin with, then held ones
	passed int    // of buf: how many were passed on
	out    []byte // what the last take gave
}

// take takes more of the stream in. It gives what can be passed on, in which each needle
// is masked by as many letters, and what one that was found is of, "" if there is none. The
// result is the caller's until the next call. At the end (last) nothing is held.
func (s *scan) take(more []byte, last bool) (out []byte, of string) {
	s.renew()
	if len(s.needles.all) == 0 {
		return more, ""
	}
	s.out = s.out[:0]
	for len(more) > pieceSize {
		if hit := s.piece(more[:pieceSize], false); hit != "" {
			of = hit
		}
		more = more[pieceSize:]
	}
	if hit := s.piece(more, last); hit != "" {
		of = hit
	}
	return s.out, of
}

// renew has the needles be those of now. Without any it keeps those that it has: they are
// forgotten only once nobody waits for the stream.
func (s *scan) renew() {
	if s.live == nil {
		return
	}
	if now := s.live(); s.needles == nil || len(now.all) > 0 {
		s.needles = now
	}
}

func (s *scan) piece(more []byte, last bool) (of string) {
	s.buf = append(s.buf, more...)
	l := look(s.needles, s.buf, last)
	defer l.forget()
	bound := len(s.buf) - keptAlways - keptPerByte*s.needles.most
	hold, keep := max(l.hold, bound), max(min(l.keep, l.hold), bound)
	if last {
		hold, keep = len(s.buf), len(s.buf)
	}
	end := max(hold, s.passed)
	begin := len(s.out) - s.passed // of buf in out
	s.out = append(s.out, s.buf[s.passed:end]...)
	for _, found := range l.found {
		for i := max(found.from, s.passed); i < min(found.to, end); i++ {
			s.out[begin+i] = mask
		}
	}
	s.passed = end - keep
	s.buf = append(s.buf[:0], s.buf[keep:]...)
	return l.of
}
