package httphead

import "net/http"

// framing finds out where the requests end that a client says over HTTP/1, as net/http does. Only then is it
// known whether something came behind the last of them: net/http reads that together with it, and gives it up
// without a word when the client goes. A head's end it finds itself; how a body is framed it is told by the
// request that a handler is told of. The zero value is of a new connection.
type framing struct {
	at   framePlace
	left uint64 // bytes of a body, or of a chunk with the end of its line
	line int    // bytes of a line so far
	cr   bool   // the last of them is a carriage return
	size uint64 // of the chunk, as far as its line has come
	hex  bool   // the line may say more of that
	said bool   // of the next head something has come beside empty lines
	rest []byte // what came behind a head, until it is known what that is
	odd  bool   // a handler was told of a request that was not found here
}

// framePlace is what comes next on the connection.
type framePlace int

const (
	inHead     framePlace = iota
	behindHead            // of whose request no handler has been told yet
	inBody                // whose length is known
	inSize                // of a chunk
	inChunk
	inTrailer
	inOther // which is no HTTP any more
)

// maxRest bounds what is kept of what came behind a head: net/http reads 4 KiB at a time, and nothing before it has
// told a handler.
const maxRest = 64 << 10

// takeBytes takes bytes that have come.
func (f *framing) takeBytes(b []byte) {
	for len(b) > 0 {
		switch f.at {
		case inHead:
			b = f.takeHead(b)
		case behindHead:
			f.rest = append(f.rest, b[:min(len(b), maxRest-len(f.rest))]...)
			return
		case inBody, inChunk:
			b = f.passBody(b)
		case inSize:
			b = f.chunkSize(b)
		case inTrailer:
			b = f.trailer(b)
		case inOther:
			return
		}
	}
}

// takeHead takes what belongs to a head. Empty lines before it are passed over, as some clients send one behind a
// body.
func (f *framing) takeHead(b []byte) (behind []byte) {
	for i, c := range b {
		blank, ended := f.inLine(c)
		if ended && blank && f.said {
			f.at = behindHead
			return b[i+1:]
		}
		f.said = f.said || c != '\r' && c != '\n'
	}
	return nil
}

// inLine takes a byte of a line: whether the line has ended with it, and was blank.
func (f *framing) inLine(c byte) (blank, ended bool) {
	if c != '\n' {
		f.line, f.cr = f.line+1, c == '\r'
		return false, false
	}
	blank = f.line == 0 || f.line == 1 && f.cr
	f.line, f.cr = 0, false
	return blank, true
}

// passBody takes what belongs to a body or a chunk.
func (f *framing) passBody(b []byte) (behind []byte) {
	n := min(uint64(len(b)), f.left)
	if f.left -= n; f.left == 0 {
		if f.at == inBody {
			f.nextHead()
		} else {
			f.beginSize()
		}
	}
	return b[n:]
}

func (f *framing) beginSize() { f.at, f.size, f.hex = inSize, 0, true }

// maxChunk is more than any chunk that net/http reads to its end.
const maxChunk = 1 << 62

// chunkSize takes what belongs to the line with a chunk's size. net/http ends the connection at what it does not take.
func (f *framing) chunkSize(b []byte) (behind []byte) {
	for i, c := range b {
		if _, ended := f.inLine(c); ended {
			f.at, f.left = inChunk, f.size+2 // with the end of its line
			if f.size == 0 {
				f.at = inTrailer
			}
			return b[i+1:]
		}
		digit, is := digitOf(c)
		if f.hex = f.hex && is; f.hex {
			f.size = min(f.size<<4|digit, maxChunk)
		}
	}
	return nil
}

func digitOf(c byte) (digit uint64, is bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'a' <= c && c <= 'f':
		return uint64(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return uint64(c-'A') + 10, true
	}
	return 0, false
}

// trailer takes what belongs to the fields behind a body.
func (f *framing) trailer(b []byte) (behind []byte) {
	for i, c := range b {
		if blank, ended := f.inLine(c); ended && blank {
			f.nextHead()
			return b[i+1:]
		}
	}
	return nil
}

// nextHead begins another head.
func (f *framing) nextHead() { f.at, f.said, f.line, f.cr = inHead, false, 0, false }

// handle takes that a handler is told of a request, which is the one whose head has ended.
func (f *framing) handle(r *http.Request) {
	f.odd = f.odd || f.at != behindHead
	rest := f.rest
	f.rest = nil
	f.nextHead()
	switch {
	case r.ProtoMajor > 1: // the rest of HTTP/2's preface
		f.stopHTTP()
		return
	case len(r.TransferEncoding) > 0:
		f.beginSize()
	case r.ContentLength > 0:
		f.at, f.left = inBody, uint64(r.ContentLength)
	}
	f.takeBytes(rest)
}

// stopHTTP takes that HTTP is over on the connection.
func (f *framing) stopHTTP() { *f = framing{at: inOther} }

// unheard reports whether something came of which no handler was told, or whether that is not known.
func (f *framing) unheard() bool { return f.odd || f.at == behindHead || f.at == inHead && f.said }
