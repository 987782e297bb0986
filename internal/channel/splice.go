package channel

import (
	"io"
	"sync"
)

const spliceBuffer = 64 << 10

// Splice copies both ways between a and b until both directions have ended,
// passing each half-close on, and closes both. When one side no longer takes
// what the other sends, the rest is read and thrown away, so that the sender
// ends in its own time. It returns the bytes copied from a to b and from b to a.
func Splice(a, b *Conn) (ab, ba int64) {
	var both sync.WaitGroup
	both.Go(func() { ab = Copy(b, a) })
	both.Go(func() { ba = Copy(a, b) })
	both.Wait()
	_ = a.raw.Close()
	_ = b.raw.Close()
	return ab, ba
}

// Copy is one direction of a Splice: from src to dst, which it half-closes at the
// end.
func Copy(dst, src *Conn) int64 {
	buf := make([]byte, spliceBuffer)
	// The wrappers keep io.Copy from preferring the connections' own ways,
	// which would allocate for every stream.
	n, err := io.CopyBuffer(struct{ io.Writer }{dst.raw}, struct{ io.Reader }{src.raw}, buf)
	_ = dst.CloseWrite()
	if err != nil {
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{src.raw}, buf)
	}
	return n
}
