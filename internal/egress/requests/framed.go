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
	// broken is called when the server says that the client has broken HTTP/2's rules, and
	// begins for each request that the client begins.
	broken, begins func()
	head           []byte // of the frame that is being written, as far as it counts
	rest           int    // bytes of a frame that do not count

	// Of the frames that come, behind the preface: the same, and the last request's stream.
	prefaced int
	said     []byte
	unsaid   int
	last     uint32
}

// What counts of a frame (RFC 9113, sections 4.1, 6.4, 6.8 and 7).
const (
	frameHead = 9
	frameType = 3 // where in the head it is
	stream    = 5 // where its number is
	headers   = 1
	resets    = 3
	goesAway  = 7

	codeOfReset  = frameHead     // where it begins
	codeOfGoAway = frameHead + 4 // behind a stream's number
	codeLength   = 4

	protocolError    = 0x1
	compressionError = 0x9
	enhanceYourCalm  = 0xb
)

// lengthOfPreface is how many bytes a client says before its first frame.
const lengthOfPreface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// Read implements net.Conn. The server has one reader.
func (f *framed) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	f.listen(b[:n])
	return n, err
}

// listen counts the requests that begin in what comes: each has a stream with a higher number
// than those before.
func (f *framed) listen(b []byte) {
	if f.prefaced < lengthOfPreface {
		n := min(lengthOfPreface-f.prefaced, len(b))
		f.prefaced, b = f.prefaced+n, b[n:]
	}
	for len(b) > 0 {
		if f.unsaid > 0 {
			n := min(f.unsaid, len(b))
			f.unsaid, b = f.unsaid-n, b[n:]
			continue
		}
		n := min(frameHead-len(f.said), len(b))
		f.said, b = append(f.said, b[:n]...), b[n:]
		if len(f.said) < frameHead {
			return
		}
		f.unsaid = lengthOf(f.said)
		if id := binary.BigEndian.Uint32(f.said[stream:]) &^ (1 << 31); f.said[frameType] == headers && id > f.last {
			f.last = id
			f.begins()
		}
		f.said = f.said[:0]
	}
}

// lengthOf is how many bytes come behind the head of a frame.
func lengthOf(head []byte) int { return int(head[0])<<16 | int(head[1])<<8 | int(head[2]) }

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
	f.rest = max(0, frameHead+lengthOf(f.head)-len(f.head))
	if at := f.counts() - codeLength; at >= frameHead {
		code := binary.BigEndian.Uint32(f.head[at:])
		if slices.Contains([]uint32{protocolError, compressionError, enhanceYourCalm}, code) {
			f.broken()
		}
	}
	f.head = f.head[:0]
}
