package requests

import (
	"encoding/binary"
	"net"
	"slices"
)

// framed is a client's end of a connection of HTTP/2. It looks at what the server says on it:
// of a request whose fields can't be decoded, or that HTTP/2 does not allow, nobody is told,
// but the frame with which the server ends it says so.
type framed struct {
	net.Conn
	// broken is called when the server says that the client has broken HTTP/2's rules.
	broken func()
	head   []byte // of the frame that is being written, as far as it counts
	rest   int    // bytes of a frame that do not count
}

// What counts of a frame (RFC 9113, sections 4.1, 6.4, 6.8 and 7).
const (
	frameHead = 9
	frameType = 3 // where in the head it is
	resets    = 3
	goesAway  = 7

	codeOfReset  = frameHead     // where it begins
	codeOfGoAway = frameHead + 4 // behind a stream's number
	codeLength   = 4

	protocolError    = 0x1
	compressionError = 0x9
	enhanceYourCalm  = 0xb
)

// Write implements net.Conn.
func (f *framed) Write(b []byte) (int, error) {
	f.hear(b)
	return f.Conn.Write(b)
}

func (f *framed) hear(b []byte) {
	for len(b) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(b))
			f.rest, b = f.rest-n, b[n:]
			continue
		}
		n := min(f.counts()-len(f.head), len(b))
		f.head, b = append(f.head, b[:n]...), b[n:]
		if len(f.head) == f.counts() {
			f.take()
		}
	}
}

// counts is how many bytes of the frame count, as far as that is known.
func (f *framed) counts() int {
	if len(f.head) < frameHead {
		return frameHead
	}
	switch f.head[frameType] {
	case resets:
		return codeOfReset + codeLength
	case goesAway:
		return codeOfGoAway + codeLength
	}
	return frameHead
}

// take looks at a frame of which all that counts is there.
func (f *framed) take() {
	length := int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.rest = max(0, frameHead+length-len(f.head))
	if at := f.counts() - codeLength; at >= frameHead {
		code := binary.BigEndian.Uint32(f.head[at:])
		if slices.Contains([]uint32{protocolError, compressionError, enhanceYourCalm}, code) {
			f.broken()
		}
	}
	f.head = f.head[:0]
}
