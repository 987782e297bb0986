package requestparts

import (
	"encoding/binary"
	"errors"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxDepth bounds how deeply a reading is read again: codings, messages, parts and letters.
const maxDepth = 4

// Body tells how servers may read a body, by what its header says.
type Body struct {
	codings []string // in the order in which they were put on, without aws-chunked
	chunked bool     // in pieces with their lengths, as uploads to object stores are
	kind    string   // Content-Type, in lower case, of all its fields
	letters []string // the charsets that it names
	parts   string   // Content-Transfer-Encoding
	framed  string   // the coding of its messages; "": none, or nothing says so
}

// BodyOf is the body of a request with this header.
func BodyOf(h http.Header) Body {
	b := Body{kind: strings.ToLower(strings.Join(h.Values("Content-Type"), ",")), letters: charsetsOf(h.Values("Content-Type"))}
	b.parts = strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Transfer-Encoding"), ",")))
	b.codings = codingsOf(h.Values("Content-Encoding"))
	for i := 0; i < len(b.codings); {
		if b.codings[i] != awsChunked {
			i++
			continue
		}
		b.codings, b.chunked = append(b.codings[:i:i], b.codings[i+1:]...), true
	}
	b.chunked = b.chunked || strings.HasPrefix(strings.ToUpper(h.Get("X-Amz-Content-Sha256")), "STREAMING-") || h.Get("X-Amz-Decoded-Content-Length") != ""
	for _, field := range []string{"Grpc-Encoding", "Connect-Content-Encoding"} {
		b.framed = strings.Join(append(codingsOf(h.Values(field)), codingsOf([]string{b.framed})...), ", ")
	}
	return b
}

// Unread is why nobody can see what a server reads in the body; "": it can be seen. It has words of
// the client's in it, as they came and as long as they are: whoever tells of it masks and cuts it.
func (b Body) Unread() string {
	if b.framed != "" {
		return "its messages are encoded (" + b.framed + ")"
	}
	for _, one := range b.codings {
		if !decodes(one) {
			return "it is encoded (" + strings.Join(b.codings, ", ") + ")"
		}
	}
	for _, name := range b.letters {
		if _, known := lettersOf(name); !known {
			return "it is written in another charset than UTF-8 (" + name + ")"
		}
	}
	if !readsTransfer(b.parts) {
		return "it is encoded (" + b.parts + ")"
	}
	return ""
}

// Codings are those that it is encoded in, besides pieces; nil: none.
func (b Body) Codings() []string { return b.codings }

// Chunked tells that it comes in pieces, as uploads to object stores do.
func (b Body) Chunked() bool { return b.chunked }

// HasParts tells that it is made of parts, each of which may be encoded.
func (b Body) HasParts() bool {
	return strings.Contains(b.kind, "multipart") || strings.Contains(b.kind, "message/")
}

// OtherLetters tells that it says of itself that it is written in other letters than UTF-8's.
func (b Body) OtherLetters() bool {
	for _, name := range b.letters {
		if letters, known := lettersOf(name); !known || letters != nil {
			return true
		}
	}
	return false
}

// Plain tells that servers read what is written, piece for piece, so that it can be looked
// through while it passes.
func (b Body) Plain() bool {
	return len(b.codings) == 0 && b.framed == "" && b.parts == "" && !b.HasParts() && !b.inText() && !b.OtherLetters()
}

// inText tells that its messages are in base64, as browsers' gRPC has them.
func (b Body) inText() bool { return strings.Contains(b.kind, "grpc-web-text") }

// inFrames tells that it is made of messages with their lengths.
func (b Body) inFrames() bool {
	return strings.Contains(b.kind, "grpc") || strings.Contains(b.kind, "connect+")
}

// Each visits the readings of a body, as it is first, until visit says false. Each reading is good
// for the call alone. unread is why a server may read something in it that is not among them, as of Unread.
func (b Body) Each(body []byte, visit func(reading []byte) (more bool)) (unread string) {
	if unread = b.Unread(); unread != "" {
		return unread
	}
	e := &each{visit: visit}
	e.allowMore(body)
	e.encoded(b, body)
	return e.unread
}

// each is one body that is read.
type each struct {
	visit  func([]byte) bool
	over   bool // nobody wants more
	unread string
	left   int // bytes of readings that may still be visited
}

// How many readings of a body are visited, by their bytes: no client's has more, and to look
// through each takes time.
const (
	maxReadings  = 16
	leastReading = 1 << 20
)

// allowMore has so much more be visited as the readings of a body are.
func (e *each) allowMore(body []byte) { e.left += maxReadings*len(body) + leastReading }

// charge counts what is looked through for another reading.
func (e *each) charge(part []byte) {
	if e.left -= len(part); e.left < 0 {
		e.leaveUnread("it can be read in too many ways")
	}
}

// tellReading visits a reading.
func (e *each) tellReading(reading []byte) {
	if e.charge(reading); e.over {
		return
	}
	e.over = e.over || !e.visit(reading)
}

// leaveUnread has something stay unread.
func (e *each) leaveUnread(why string) { e.over, e.unread = true, why }

// encoded reads a body with its codings, and without them.
func (e *each) encoded(b Body, body []byte) {
	if len(b.codings) == 0 {
		e.readPlain(b, body, 0)
		return
	}
	if e.tellReading(body); e.over {
		return
	}
	if pieces, ok := joinPieces(body); ok { // around what is encoded
		body = pieces
	}
	out, err := decodeBody(b.codings, body)
	switch {
	case errors.Is(err, errLong), errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		e.leaveUnread(errLong.Error())
		return
	case err != nil:
		e.leaveUnread("it is not the " + strings.Join(b.codings, ", ") + " that it says")
		return
	}
	e.allowMore(out)
	e.readPlain(b, out, 1)
}

// readPlain reads a body that has no coding any more.
func (e *each) readPlain(b Body, body []byte, depth int) {
	if e.tellReading(body); e.over || depth == maxDepth {
		return
	}
	for _, read := range []func(Body, []byte, int){e.pieces, e.readText, e.frames, e.transferred, e.partsOf, e.otherLetters} {
		if read(b, body, depth+1); e.over {
			return
		}
	}
}

// pieces reads what has the form of pieces with their lengths before them, whatever the header
// says of it.
func (e *each) pieces(b Body, body []byte, depth int) {
	if whole, ok := joinPieces(body); ok {
		b.chunked = false
		e.readPlain(b, whole, depth)
	}
}

// readText reads base64 that is messages, in which each piece may have an end of its own.
func (e *each) readText(b Body, body []byte, depth int) {
	if !b.inText() {
		return
	}
	out, ok := unpieced(body)
	if !ok {
		e.leaveUnread("it is not the base64 that it says")
		return
	}
	b.kind = strings.ReplaceAll(b.kind, "grpc-web-text", "grpc-web")
	e.readPlain(b, out, depth)
}

// The beginning of a message of gRPC and Connect: flags and a length.
const (
	frameHead  = 5
	compressed = 1
)

// frames reads messages one behind the other. Bytes that are none end them.
func (e *each) frames(b Body, body []byte, depth int) {
	if !b.inFrames() || b.inText() {
		return
	}
	var out []byte
	for rest := body; len(rest) >= frameHead; {
		length := int(binary.BigEndian.Uint32(rest[1:frameHead]))
		if rest[0]&compressed != 0 {
			e.leaveUnread("a message of it is compressed")
			return
		}
		end := min(frameHead+length, len(rest))
		out, rest = append(out, rest[frameHead:end]...), rest[end:]
	}
	if len(out) == 0 {
		return
	}
	b.kind = strings.NewReplacer("grpc", "", "connect", "").Replace(b.kind)
	e.readPlain(b, out, depth)
}

// transferred reads a body that is encoded as parts are.
func (e *each) transferred(b Body, body []byte, depth int) {
	if out, changed := untransfer(b.parts, body); changed {
		b.parts = ""
		e.readPlain(b, out, depth)
	}
}

// partsOf reads the parts that are encoded, wherever their heads are: servers do not agree about
// what a part is.
func (e *each) partsOf(b Body, body []byte, depth int) {
	for coding, part := range encodedParts(body) {
		if !readsTransfer(coding) {
			if b.HasParts() {
				e.leaveUnread("a part of it is encoded (" + coding + ")")
				return
			}
			continue
		}
		if isAsWritten(coding) {
			continue
		}
		if e.charge(part); e.over {
			return
		}
		if out, changed := untransfer(coding, part); changed {
			if e.readPlain(Body{kind: "multipart"}, out, depth); e.over {
				return
			}
		}
	}
	for _, name := range partCharsets(b, body) {
		if _, known := lettersOf(name); !known {
			e.leaveUnread("a part of it is written in another charset than UTF-8 (" + name + ")")
			return
		}
	}
}

// otherLetters reads what is written in other letters than UTF-8, as its header or its first bytes
// say, or as it looks.
func (e *each) otherLetters(b Body, body []byte, depth int) {
	plain := b
	plain.letters = nil
	for _, read := range lettersIn(b.letters, body) {
		if out, changed := read(body); changed {
			if e.tellReading(out); e.over {
				return
			}
			if depth < maxDepth && b.HasParts() {
				e.partsOf(plain, out, depth+1)
			}
		}
	}
}
