package channel

import (
	"errors"
	"io"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A copy begins with a small buffer, as most streams carry little or wait, and has a large one as soon as
// a read fills it.
const (
	smallSplice = 8 << 10
	largeSplice = 64 << 10
	// manySplices is how many copies of a Memory have large buffers at most; the others go on
	// with small ones.
	manySplices = 2_048
)

// enlarge takes a place for a large buffer, which free gives back; false: there is none.
func (m *Memory) enlarge() (free func(), ok bool) {
	if m == nil {
		return func() {}, true
	}
	if m.copies.Add(1) > manySplices {
		m.copies.Add(-1)
		return nil, false
	}
	return func() { m.copies.Add(-1) }, true
}

// memoryOf is that of whichever is a host's stream; nil: neither is.
func memoryOf(ends ...*Conn) *Memory {
	for _, c := range ends {
		if s, ok := c.raw.(*muxStream); ok && s.held != nil {
			return s.held.memory
		}
	}
	return nil
}

// Splice copies both ways between a and b until both directions have ended,
// passing each half-close on, and closes both. When one side no longer takes
// what the other sends, the rest is read and thrown away, so that the sender
// ends in its own time. It returns the bytes copied from a to b and from b to a.
//
// gone, which may be nil, is called once if a breaks or takes no more, as soon as
// that is seen: who sends to a client that has gone should be told, and not hear
// that all of it was taken.
func Splice(a, b *Conn, gone func()) (ab, ba int64) {
	lost := func() {}
	if gone != nil {
		lost = sync.OnceFunc(gone)
	}
	var both sync.WaitGroup
	safego.In(&both, func() { ab = copyOne(b, a, func(reading bool) { lostIf(reading, lost) }) })
	safego.In(&both, func() { ba = copyOne(a, b, func(reading bool) { lostIf(!reading, lost) }) })
	both.Wait()
	_ = a.raw.Close()
	_ = b.raw.Close()
	return ab, ba
}

func lostIf(is bool, lost func()) {
	if is {
		lost()
	}
}

// Copy is one direction of a Splice: from src to dst, which it half-closes at the
// end.
func Copy(dst, src *Conn) int64 { return copyOne(dst, src, func(bool) {}) }

// copyOne calls failed when the copy does not come to its end: reading tells
// whether src or dst is to blame.
func copyOne(dst, src *Conn, failed func(reading bool)) int64 {
	n, from, err := copyAll(dst.raw, src.raw, memoryOf(dst, src))
	if err != nil {
		failed(from)
	}
	_ = dst.CloseWrite()
	if err != nil {
		_, _ = io.Copy(io.Discard, struct{ io.Reader }{src.raw}) // under the deadline that src may have
	}
	return n
}

// copyAll copies to the end of src. Of an error it tells whether reading brought it.
func copyAll(dst io.Writer, src io.Reader, memory *Memory) (n int64, reading bool, err error) {
	buf := make([]byte, smallSplice)
	for {
		got, rerr := src.Read(buf)
		put, werr := 0, error(nil)
		if got > 0 {
			put, werr = dst.Write(buf[:got])
			n += int64(put)
		}
		switch {
		case werr != nil:
			return n, false, werr
		case errors.Is(rerr, io.EOF):
			return n, false, nil
		case rerr != nil:
			return n, true, rerr
		case got == smallSplice && len(buf) == smallSplice:
			if free, ok := memory.enlarge(); ok {
				defer free()
				buf = make([]byte, largeSplice)
			}
		}
	}
}
