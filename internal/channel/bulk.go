package channel

import (
	"bufio"
	"encoding/binary"
	"io"
)

// guestReads is how much the guest's end takes in at once. The host's end has
// no such buffer: what the guard has let through would wait in it uncounted.
const guestReads = 256 << 10

// bulk makes few and large calls of the multiplexer's many: it writes the
// header of each data frame together with the body, and reads what has come at
// once. In a sandbox each call, and each wake-up of the peer, costs as much as
// moving tens of kilobytes.
type bulk struct {
	io.ReadWriteCloser
	in io.Reader // for the multiplexer's one reading goroutine

	// Owned by the multiplexer's one writing goroutine.
	held bool   // out begins with a data header, whose body is written next
	out  []byte // kept for its capacity
}

func hostBulk(conn io.ReadWriteCloser) *bulk { return &bulk{ReadWriteCloser: conn, in: conn} }

func guestBulk(conn io.ReadWriteCloser) *bulk {
	return &bulk{ReadWriteCloser: conn, in: bufio.NewReaderSize(conn, guestReads)}
}

// Read implements io.Reader.
func (b *bulk) Read(p []byte) (int, error) { return b.in.Read(p) }

// Write implements io.Writer. A data header is taken and held back until its
// body comes; should that fail, both have failed.
func (b *bulk) Write(p []byte) (int, error) {
	if !b.held {
		if len(p) == muxHeaderSize && p[1] == muxData && binary.BigEndian.Uint32(p[8:]) > 0 {
			b.held, b.out = true, append(b.out[:0], p...)
			return len(p), nil
		}
		return b.ReadWriteCloser.Write(p)
	}
	b.held, b.out = false, append(b.out, p...)
	n, err := b.ReadWriteCloser.Write(b.out)
	return max(0, n-muxHeaderSize), err
}
