package exchange

import (
	"bytes"
	"slices"
)

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

	behind  int  // how many bytes stand behind the last end
	letters bool // one of them is no blank
	// near are the last bytes that have come of the message, at most reach: see ends.
	near    []byte
	batches []batch
}

// batch are held bytes that came within one part of the patience.
type batch struct{ bytes, since int }

// partsOfPatience is in how many parts of the patience batches are told apart.
const partsOfPatience = 8

// ending tells which bytes end a piece of structured text. No writing in which needles are found has them between
// the letters, but as parts of an escape or a terminal's sequence: see tail.ends.
var ending = func() (all [256]bool) { //nolint:gochecknoglobals // a constant
	for _, c := range []byte("}]>\"'),") {
		all[c] = true
	}
	return all
}()

// reach is how far before its end an escape, or a terminal's sequence, may begin that has another in it, in bytes.
const reach = 4 * maxEscape

// take takes more of the stream in. The needles count only as to whether one has an end in it.
func (t *tail) take(more []byte, needles *needles) {
	from := 0
	if t.framing != nil {
		if end := t.framing.take(more); end >= 0 && !t.framing.within(needles) {
			from, t.behind, t.letters, t.near = end, 0, false, t.near[:0]
		}
	}
	text := more[from:]
	if end := t.lastEnd(text); end >= 0 && !needles.hasEnding {
		text, t.behind, t.letters = text[end:], 0, false
	}
	t.behind += len(text)
	for _, c := range text {
		if t.letters = t.letters || !blank(c); t.letters {
			break
		}
	}
	if last := more[from:]; len(last) >= reach {
		t.near = append(t.near[:0], last[len(last)-reach:]...)
	} else {
		t.near = append(t.near, last...)
		t.near = append(t.near[:0], t.near[max(0, len(t.near)-reach):]...)
	}
}

// lastEnd is where the bytes behind the last one begin that ends a piece; below 0: there is none.
func (t *tail) lastEnd(more []byte) int {
	for i, c := range slices.Backward(more) {
		if ending[c] && t.ends(more, i) {
			return i + 1
		}
	}
	return -1
}

// ends tells whether a byte that may end a piece does. Within a terminal's sequence each of them may stand (ESC [ > 4 m),
// and a brace is the end of an escape (\u{41}, \N{LATIN SMALL LETTER A}), whose backslash may be escaped itself, if one
// may have begun near before it. Of these no byte is in the braces that ends a piece, but for such a brace.
func (t *tail) ends(more []byte, at int) bool {
	before := more[max(0, at-reach):at]
	if at < reach && len(t.near) > 0 {
		before = slices.Concat(t.near[max(0, len(t.near)-(reach-at)):], before)
	}
	if mayHaveSequence(before) {
		return false
	}
	if more[at] != '}' {
		return true
	}
	for i := len(before) - 1; i >= max(0, len(before)-reach/2); i-- {
		if ending[before[i]] && before[i] != '}' {
			before = before[i:]
			break
		}
	}
	return !bytes.ContainsAny(before, "\\&%") && bytes.IndexByte(before, leadOfFullWidth) < 0 && !bytes.Contains(before, []byte("=5"))
}

// mayHaveSequence tells whether a terminal's sequence may begin in a text. It begins with an ESC, which may be
// escaped by its number: 1b, 27 or 33 behind what begins an escape.
func mayHaveSequence(b []byte) bool {
	if bytes.IndexByte(b, 0x1b) >= 0 {
		return true
	}
	at := bytes.IndexAny(b, `&%\=`)
	if at < 0 {
		return false
	}
	for _, number := range []string{"1b", "1B", "27", "33"} {
		if bytes.Contains(b[at:], []byte(number)) {
			return true
		}
	}
	return false
}

// hold is how many bytes wait, of which so many have come just now: at most bound, and none at the stream's end,
// behind which another may begin.
func (t *tail) hold(came, bound int, last bool) (held int) {
	if last {
		t.behind, t.letters, t.near = 0, false, t.near[:0]
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

// due is how many of the held bytes have waited for the whole patience.
func (t *tail) due() (bytes int) {
	for _, b := range t.batches {
		if b.since+partsOfPatience <= t.waited {
			bytes += b.bytes
		}
	}
	return bytes
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
