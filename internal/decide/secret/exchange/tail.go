package exchange

// tail decides how many bytes at the end of what has come of a stream wait for more, so that a needle that has
// come in part is masked whole. When bytes are handed on can be seen by whoever has the stream, and often decided
// by them, so it depends on what they may know: the bytes themselves, the stream's form and how long was waited
// for more. Were the beginning of a needle held back, and nothing else, somebody who has others' words sent back
// would find out a needle letter by letter.
//
// Bytes wait from the last one on that ends a piece of structured text, or from the last known end of a message,
// if there is more than blanks behind it.
type tail struct {
	off     bool    // nothing waits
	framing framing // nil: the stream's form has no ends
	waited  int     // for more, in parts of the patience: see patience

	behind  int    // how many bytes stand behind the last end
	letters bool   // one of them is no blank
	near    nearby // of the message
	batches []batch
}

// batch are held bytes that came within one part of the patience.
type batch struct{ bytes, since int }

// partsOfPatience is in how many parts of the patience batches are told apart.
const partsOfPatience = 8

// ending tells which bytes end a piece of structured text. No writing in which needles are found has them between
// the letters, but as parts of an escape or a terminal's sequence: see nearby.endsPiece.
var ending = func() (all [256]bool) { //nolint:gochecknoglobals // a constant
	for _, c := range []byte("}]>\"'),") {
		all[c] = true
	}
	return all
}()

// takeMore takes more of the stream in. The needles count only as to whether one has an end in it.
func (t *tail) takeMore(more []byte, needles *needles) {
	from := 0
	if t.framing != nil {
		if end := t.framing.take(more); end >= 0 && !t.framing.within(needles) {
			from, t.behind, t.letters, t.near = end, 0, false, nearby{}
		}
	}
	text := more[from:]
	if end := t.near.lastEnd(text); end >= 0 && !needles.hasEnding {
		text, t.behind, t.letters = text[end:], 0, false
	}
	t.behind += len(text)
	for _, c := range text {
		if t.letters = t.letters || !isBlank(c); t.letters {
			break
		}
	}
}

// holdBytes returns how many bytes wait, of which so many have come just now: at most bound, and none at the stream's end,
// behind which another may begin.
func (t *tail) holdBytes(came, bound int, last bool) (held int) {
	if last {
		t.behind, t.letters, t.near = 0, false, nearby{}
	}
	if t.letters && !t.off {
		held = min(t.behind, bound)
	}
	if n := len(t.batches); n > 0 && t.batches[n-1].since == t.waited {
		t.batches[n-1].bytes += came
	} else if came > 0 {
		t.batches = append(t.batches, batch{came, t.waited})
	}
	past := -held
	for _, b := range t.batches {
		past += b.bytes
	}
	for past > 0 { // the oldest have passed
		b := &t.batches[0]
		n := min(past, b.bytes)
		if b.bytes, past = b.bytes-n, past-n; b.bytes == 0 {
			t.batches = t.batches[1:]
		}
	}
	return held
}

// dueBytes is how many of the held bytes have waited for the whole patience.
func (t *tail) dueBytes() (bytes int) {
	for _, b := range t.batches {
		if b.since+partsOfPatience <= t.waited {
			bytes += b.bytes
		}
	}
	return bytes
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
