package httpqueue

import (
	"encoding/binary"
	"net"
	"slices"
	"sync/atomic"
)

// Conn is a client's end of a connection of HTTP/2, as the server has it. It looks at the frames of
// both sides, and changes none: which requests begin, which the client takes back, and which the
// server answers or refuses. Of a request whose fields can't be decoded, or that HTTP/2 does not
// allow, no handler is told; the frame with which the server ends it says so. A client may speak
// HTTP/1 instead: nothing of that is looked at. It does not tell of TLS below it: net/http then
// serves it as it does what is not encrypted.
type Conn struct {
	net.Conn
	// Queue is told of each request; nil: nobody counts.
	Queue *Queue
	// Begun is called for each request that the client begins, and Broken when the server says that
	// the client has broken the rules of HTTP/2. Each may be nil.
	Begun, Broken func()
	// Full is called once, when the queue has no room: the connection ends at that. It may be nil.
	Full func()

	come scanner // of what the client says, behind the preface
	said scanner // of what the server says
	last uint32  // the stream of the client's newest request
	skip int     // bytes of the preface that have come
	// other tells that another protocol is spoken: neither side's frames are looked at. A server that has
	// waited in vain for the rest of a preface answers while it reads on.
	other atomic.Bool
	half  atomic.Bool // see BrokeOff
	full  error       // with which reading goes on
}

// The frames that count (RFC 9113, sections 4.1, 6.2, 6.4 and 6.8).
const (
	headLength = 9
	typeAt     = 3 // in the head
	streamAt   = 5
	codeLength = 4

	typeHeaders = 1
	typeReset   = 3
	typeGoAway  = 7
)

// The codes with which a server says that its client has broken the rules, or asks too much (section
// 7).
const (
	protocolError    = 0x1
	refusedStream    = 0x7 // more requests than may be under way
	compressionError = 0x9
	enhanceYourCalm  = 0xb
)

// preface is what a client says before its first frame (section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Read implements net.Conn. The server has one reader. The error is ErrFull once the queue has no
// room.
func (c *Conn) Read(b []byte) (int, error) {
	if c.full != nil {
		return 0, c.full
	}
	n, err := c.Conn.Read(b)
	rest := b[:n]
	for len(rest) > 0 && c.skip < len(preface) && !c.other.Load() {
		c.other.Store(rest[0] != preface[c.skip])
		c.skip, rest = c.skip+1, rest[1:]
	}
	if !c.other.Load() {
		c.come.scanFrames(rest, c.listen)
		c.half.Store(c.skip > 0 && c.skip < len(preface) || c.come.mayBegin())
	}
	if c.full != nil {
		if c.Full != nil {
			c.Full()
		}
		return 0, c.full
	}
	return n, err
}

// BrokeOff reports whether the last that came is the beginning of what is, or may be, a request's: of which
// Begun was not called.
func (c *Conn) BrokeOff() bool { return !c.other.Load() && c.half.Load() }

// listen takes a frame of the client's. Each request has a stream with a higher number than those
// before; fields that come behind a body have the number of their request.
func (c *Conn) listen(f countedFrame) {
	switch {
	case f.kind == typeHeaders && f.stream > c.last:
		c.last = f.stream
		if c.Begun != nil {
			c.Begun()
		}
		if c.Queue != nil && c.full == nil {
			c.full = c.Queue.beginRequest(f.stream)
		}
	case f.kind == typeReset && c.Queue != nil:
		c.Queue.takeBack(f.stream)
	}
}

// Write implements net.Conn. The server writes one frame after the other.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.other.Load() {
		c.said.scanFrames(b, c.hearFrame)
	}
	return c.Conn.Write(b)
}

// hearFrame takes a frame of the server's.
func (c *Conn) hearFrame(f countedFrame) {
	switch {
	case c.Queue == nil:
	case f.kind == typeHeaders:
		c.Queue.beginAnswer(f.stream)
	case f.kind == typeReset:
		c.Queue.refuseRequest(f.stream, f.code == refusedStream)
	}
	if c.Broken != nil && f.kind != typeHeaders && slices.Contains([]uint32{protocolError, compressionError, enhanceYourCalm}, f.code) {
		c.Broken()
	}
}

// countedFrame is what counts of one.
type countedFrame struct {
	kind   byte
	stream uint32
	code   uint32 // of a reset and of a goodbye
}

// scanner finds the frames in what is said on one half of a connection, however that is cut.
type scanner struct {
	head []byte // of the frame that is being said, as far as it counts
	rest int    // bytes of a frame that do not count
}

// scanFrames tells of each frame of which all that counts is there.
func (s *scanner) scanFrames(b []byte, tell func(countedFrame)) {
	for len(b) > 0 {
		if s.rest > 0 {
			n := min(s.rest, len(b))
			s.rest, b = s.rest-n, b[n:]
			continue
		}
		n := min(s.counts()-len(s.head), len(b))
		s.head, b = append(s.head, b[:n]...), b[n:]
		if len(s.head) == s.counts() {
			s.endScan(tell)
		}
	}
}

// counts is how many bytes of the frame count, as far as that is known. A frame that is shorter
// than its kind is breaks HTTP/2's rules, and ends the connection.
func (s *scanner) counts() int {
	if len(s.head) < headLength {
		return headLength
	}
	return headLength + min(codeAt(s.head[typeAt])+lengthOfCode(s.head[typeAt]), s.length())
}

// mayBegin tells whether there is some of the head of a frame that begins a request, or of one that does not
// say yet what it is.
func (s *scanner) mayBegin() bool {
	return len(s.head) > 0 && (len(s.head) <= typeAt || s.head[typeAt] == typeHeaders)
}

// length is how many bytes come behind the head of the frame.
func (s *scanner) length() int {
	return int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2])
}

// codeAt is where behind the head a frame of a kind has its code.
func codeAt(kind byte) int {
	if kind == typeGoAway {
		return codeLength // behind the number of a stream
	}
	return 0
}

func lengthOfCode(kind byte) int {
	if kind == typeGoAway || kind == typeReset {
		return codeLength
	}
	return 0
}

func (s *scanner) endScan(tell func(countedFrame)) {
	f := countedFrame{kind: s.head[typeAt], stream: binary.BigEndian.Uint32(s.head[streamAt:]) &^ (1 << 31)}
	if code := s.head[headLength:]; lengthOfCode(f.kind) > 0 && len(code) == codeAt(f.kind)+codeLength {
		f.code = binary.BigEndian.Uint32(code[codeAt(f.kind):])
	}
	s.rest = s.length() - (len(s.head) - headLength)
	s.head = s.head[:0]
	tell(f)
}
