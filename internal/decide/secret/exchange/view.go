package exchange

import (
	"bytes"
	"slices"
	"sync"
)

// Bounds of how deeply what is escaped and encoded is read.
const (
	maxUnescaped = 2 // escapes of escapes
	maxDecoded   = 2 // base64 or hexadecimal of one another
	maxDepth     = 3 // both together
)

// view is a piece of a stream as it is read: as it is, unescaped, or decoded.
type view struct {
	b []byte
	// Where in the piece each byte is from; both nil: where it is.
	from, to []int32
	open     bool // what comes next in the stream goes on with it
	// How often it was unescaped, and decoded.
	unescaped, decoded int
	foreign            bool // it was read in another dialect once
}

func (v view) startOf(i int) int {
	if v.from == nil {
		return i
	}
	return int(v.from[i])
}

func (v view) endOf(i int) int {
	if v.to == nil {
		return i + 1
	}
	return int(v.to[i])
}

// addByte adds a byte that is made of those from one to another of a view.
func (v *view) addByte(c byte, of view, first, last int) {
	v.b = append(v.b, c)
	v.from, v.to = append(v.from, int32(of.startOf(first))), append(v.to, int32(of.endOf(last)))
}

// pieceSpan is a part of a piece.
type pieceSpan struct{ from, to int }

// looker looks through one piece of a stream, in all its views.
type looker struct {
	needles finder
	found   []pieceSpan // of needles
	of      string      // what one of these is of
	hold    int         // from where on nothing may be passed on yet
	keep    int         // from where on the next piece has to know it

	views [maxDepth + 1]view  // whose memory is used again, by depth
	texts [maxDepth + 1]view  // as above: what of the views is legible
	runs  [maxDepth + 1]coded // as above
}

var lookers = sync.Pool{New: func() any { return &looker{} }} //nolint:gochecknoglobals // memory, for all alike

// finder finds what is looked for in a text as it is.
type finder interface {
	// findNeedles visits all that is found, and what it is of.
	findNeedles(b []byte, visit func(from, to int, of string))
	// lengthBegun is how many bytes at the end of a text may be the beginning of one.
	lengthBegun(b []byte) int
	// shortest is the least number of bytes that one has.
	shortest() int
	// leastHidden is the least number of bytes of a writing that is to be read anew, and is UTF-8; 0: there are others.
	leastHidden() int
}

// lookThrough looks through a piece. The result is to be forgotten.
func lookThrough(n finder, piece []byte, last bool) *looker {
	l := lookers.Get().(*looker)
	l.needles, l.found, l.of, l.hold, l.keep = n, l.found[:0], "", len(piece), len(piece)
	l.through(view{b: piece, open: !last}, 0)
	l.mergeFound()
	return l
}

// forgetPiece has what was looked through not lie about.
func (l *looker) forgetPiece() {
	l.needles = nil
	for i := range l.views {
		clear(l.views[i].b[:cap(l.views[i].b)])
		clear(l.texts[i].b[:cap(l.texts[i].b)])
		clear(l.runs[i].values[:cap(l.runs[i].values)])
	}
	lookers.Put(l)
}

// through looks for needles in a view, and in the views of it.
func (l *looker) through(v view, depth int) {
	l.needles.findNeedles(v.b, func(from, to int, of string) {
		l.found, l.of = append(l.found, pieceSpan{v.startOf(from), v.endOf(to - 1)}), of
	})
	if v.open {
		if n := l.needles.lengthBegun(v.b); n > 0 {
			l.noteBegun(v.startOf(len(v.b)-n), n >= hush)
		}
	}
	if depth == maxDepth {
		return
	}
	if least := l.needles.leastHidden(); least > 0 {
		ok := false
		if v, ok = l.legible(v, least, depth); !ok {
			return
		}
	}
	if v.unescaped < maxUnescaped {
		l.unescape(v, depth+1, readLeniently, false)
	}
	if v.unescaped < maxUnescaped && v.decoded == 0 && !v.foreign {
		for _, read := range dialects(v.b, v.open) {
			l.unescape(v, depth+1, read, true)
		}
	}
	if v.decoded < maxDecoded {
		l.decodeView(v, depth+1)
	}
}

// noteBegun takes that something may begin in the piece and go on behind it.
func (l *looker) noteBegun(at int, held bool) {
	l.keep = min(l.keep, at)
	if held {
		l.hold = min(l.hold, at)
	}
}

// unescape looks at what a view means to who reads its escapes. A text of another dialect than the
// usual one is not decoded: nobody writes base64 in letters of these.
func (l *looker) unescape(v view, depth int, read escapeReader, foreign bool) {
	i := nextEscape(v.b, 0)
	if i == len(v.b) {
		return
	}
	u := &l.views[depth]
	u.b, u.from, u.to = u.b[:0], u.from[:0], u.to[:0]
	changed, end, done := false, len(v.b), 0
	for i < end {
		meant, size, n := escapeIn(read, v.b[i:], !v.open)
		switch {
		case n > 0:
			u.addSame(v, done, i)
			for _, c := range meant[:size] {
				u.addByte(c, v, i, i+n-1)
			}
			changed, done = true, i+n
			i = nextEscape(v.b, done)
		case n < 0 && len(v.b)-i < maxEscape:
			l.noteBegun(v.startOf(i), false)
			changed, end = true, i
		default:
			i = afterNone(v.b, i)
		}
	}
	if !changed {
		return
	}
	u.addSame(v, done, end)
	meant := view{u.b, u.from, u.to, v.open, v.unescaped + 1, v.decoded, v.foreign}
	if foreign {
		meant.decoded, meant.foreign = maxDecoded, true
	}
	l.through(meant, depth)
}

// addSame adds what stands for itself.
func (v *view) addSame(of view, from, to int) {
	v.b = append(v.b, of.b[from:to]...)
	if of.from != nil {
		v.from, v.to = append(v.from, of.from[from:to]...), append(v.to, of.to[from:to]...)
		return
	}
	for i := from; i < to; i++ {
		v.from, v.to = append(v.from, int32(i)), append(v.to, int32(i+1))
	}
}

// sextets are the values of base64's letters, in both alphabets.
var sextets = func() (all [256]byte) { //nolint:gochecknoglobals // a constant
	for i := range all {
		all[i] = endOfRun
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		all[c] = byte(i)
	}
	all['-'], all['_'] = all['+'], all['/']
	return all
}()

// nibble is the value of a hexadecimal digit, of which the value in base64 is known.
func nibble(sextet byte) (value byte, is bool) {
	switch {
	case sextet < 6:
		return sextet + 10, true
	case 26 <= sextet && sextet < 32:
		return sextet - 26 + 10, true
	case 52 <= sextet && sextet < 62:
		return sextet - 52, true
	}
	return 0, false
}

// decodeView looks at what a view means to who decodes base64 or hexadecimal in it, at any
// alignment and with line breaks in it. A blank that indents a line is a plus in a form, which begins a
// line of base64 as well, so both are read where there is one.
func (l *looker) decodeView(v view, depth int) {
	l.decodeWith(v, depth, " \t\r\n")
	if bytes.Contains(v.b, []byte("\n+")) || bytes.Contains(v.b, []byte("\r+")) {
		l.decodeWith(v, depth, " \t\r\n+")
	}
}

// decodeWith decodes with what may stand between a line's end and the next line's letters.
func (l *looker) decodeWith(v view, depth int, indents string) {
	r := &l.runs[depth]
	open := r.readRuns(v, l.needles.shortest()*4/3, indents)
	if len(r.values) == 0 {
		return
	}
	for phase := range 4 {
		u := &l.views[depth]
		u.b, u.from, u.to = u.b[:0], u.from[:0], u.to[:0]
		left := r.base64(v, u, phase)
		if open && left >= 0 {
			l.noteBegun(v.startOf(left), false)
		}
		l.through(view{u.b, u.from, u.to, open, v.unescaped, v.decoded + 1, v.foreign}, depth)
	}
	for phase := range 2 {
		u := &l.views[depth]
		u.b, u.from, u.to = u.b[:0], u.from[:0], u.to[:0]
		left := r.hexadecimal(v, u, phase, 2*l.needles.shortest(), open)
		if open && left >= 0 {
			l.noteBegun(v.startOf(left), false)
		}
		if len(u.b) > 0 {
			l.through(view{u.b, u.from, u.to, open, v.unescaped, v.decoded + 1, v.foreign}, depth)
		}
	}
}

// mergeFound sorts what was found, and has nothing be held that begins within it: that is masked already. The next piece
// is read with it all the same: a text may be found up to an end of its own, and in another reading go on behind that.
func (l *looker) mergeFound() {
	slices.SortFunc(l.found, func(a, b pieceSpan) int { return a.from - b.from })
	merged := l.found[:0]
	for _, s := range l.found {
		if last := len(merged) - 1; last >= 0 && s.from <= merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	l.found = merged
	for _, s := range l.found {
		if s.from < l.hold && l.hold < s.to {
			l.hold = s.to
		}
	}
}
