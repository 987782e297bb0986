package channel

import (
	"errors"
	"io"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

const spliceBuffer = 64 << 10

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
	errand.In(&both, func() { ab = copyOne(b, a, func(reading bool) { lostIf(reading, lost) }) })
	errand.In(&both, func() { ba = copyOne(a, b, func(reading bool) { lostIf(!reading, lost) }) })
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
	buf := make([]byte, spliceBuffer)
	from := &blamed{r: src.raw}
	// The wrappers keep io.Copy from preferring the connections' own ways,
	// which would allocate for every stream.
	n, err := io.CopyBuffer(struct{ io.Writer }{dst.raw}, struct{ io.Reader }{from}, buf)
	if err != nil {
		failed(from.err != nil)
	}
	_ = dst.CloseWrite()
	if err != nil {
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{src.raw}, buf)
	}
	return n
}

// blamed remembers that reading failed.
type blamed struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (b *blamed) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
