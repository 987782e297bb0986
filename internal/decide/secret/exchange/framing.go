package exchange

import (
	"encoding/binary"
	"hash/crc32"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// framing finds the ends of messages in a stream.
type framing interface {
	// take takes more of the stream. It gives where in that the last message ends; below 0: none does.
	take(more []byte) (end int)
	// within tells whether a needle may have an end in it.
	within(needles *needles) bool
}

// framingOf is what an answer's type says of its form; nil: nothing. Somebody inside may have a host call an answer
// what they like, and decide what its first bytes are. So a form is believed as far as it is no way to have a message
// end within a secret.
func framingOf(a *http.Response) framing {
	kind := kindOfBody(a.Header)
	switch {
	case kind == "text/event-stream":
		return &events{begins: true}
	case slices.Contains([]string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/json-seq", "application/stream+json"}, kind):
		return &lineFraming{}
	case kind == "application/vnd.amazon.eventstream":
		return &eventStream{}
	case a.Request != nil && a.Request.Method == http.MethodPost && callProtocol(kind) != "" && callProtocol(kind) == callProtocol(kindOfBody(a.Request.Header)):
		return &envelopes{}
	}
	return nil
}

// kindOfBody is a type without its parameters; "": there is not one that is well written.
func kindOfBody(h http.Header) string {
	values := h.Values("Content-Type")
	if len(values) != 1 {
		return ""
	}
	kind, _, err := mime.ParseMediaType(values[0])
	if err != nil {
		return ""
	}
	return kind
}

// callProtocol is the protocol of calls that has a type; "": none, or one whose messages can't be told apart.
func callProtocol(kind string) string {
	switch {
	case strings.HasPrefix(kind, "application/grpc-web-text"): // whose heads are in base64
		return ""
	case strings.HasPrefix(kind, "application/grpc-web"):
		return "gRPC-Web"
	case kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+"):
		return "gRPC"
	case strings.HasPrefix(kind, "application/connect+"):
		return "Connect"
	}
	return ""
}

// lineFraming are messages of JSON of one line each. A line ends one if it ends as structured text does: in other texts
// there are ends of lines between the letters of what is encoded, and these may be written as escapes that end in braces.
type lineFraming struct {
	ended bool // with the last byte that is no blank
	near  nearby
}

func (l *lineFraming) take(more []byte) (end int) {
	end = -1
	for i, c := range more {
		ends := l.near.takeByte(c)
		switch {
		case c == '\n' && l.ended:
			end, l.near = i+1, nearby{}
		case !isBlank(c):
			l.ended = ends && (c == '}' || c == ']' || c == '"')
		}
	}
	return end
}

func (*lineFraming) within(needles *needles) bool { return needles.hasBreak }

// events are messages that a blank line ends, as server-sent events are. Lines end with LF, CR, or both. What is encoded
// may go on behind blank lines, so none ends a message behind many letters of base64, however many lines these are on. And
// an escape may take a line's end for its own (=, a backslash, a style sheet's digits): none does behind what may be one.
type events struct {
	begins  bool // a line does
	cr      bool // the last byte was a CR
	ended   bool // a message has, with it
	broken  bool // a line has ended behind the last byte that is seen and no blank, or may have
	written bool // that byte may be of an escape, or of a line's end of quoted-printable
	letters int  // of base64 behind the last byte that ends them in every reading
	near    nearby
}

// fewLetters are as many letters of base64 as may stand at the end of an event: fewer than the shortest text that is
// looked for takes.
const fewLetters = shortest * 4 / 3

func (e *events) take(more []byte) (end int) {
	end = -1
	for i, c := range more {
		e.countLetters(c)
		switch {
		case c == '\n' && e.cr: // of the line's end that has begun
			if e.ended {
				end = i + 1
			}
			e.cr = false
			continue
		case c == '\n' || c == '\r':
			if e.ended = e.begins && !e.written && e.letters <= fewLetters; e.ended {
				end = i + 1
			}
			e.begins = true
		default:
			e.begins = false
		}
		e.cr = c == '\r'
	}
	return end
}

// countLetters counts letters of base64 as a decoder would. It takes a line's end and the blanks behind it for nothing, wherever
// an escape may have written one of them; so a blank ends letters only right behind what is seen and no escape's. Letters may be written
// as escapes, of which each takes more letters than it writes, be of full width, and have what is not seen between them.
// All that may be is nothing: it neither counts nor ends them.
func (e *events) countLetters(c byte) {
	ends := e.near.takeByte(c)
	inSequence, inEscape := e.near.inSequence(), e.near.inEscape()
	switch {
	case c == '\n' || c == '\r':
		e.broken = true
	case sextets[c] != endOfRun || c == leadOfFullWidth:
		e.letters = min(e.letters+1, fewLetters+1)
		e.broken, e.written = e.broken && inSequence, e.written && inSequence || inEscape
	case c < ' ' && c != '\t' || c >= 0x7f: // not seen, or it may be
	case c == ' ' || c == '\t':
		if !e.broken && !e.written && !inSequence {
			e.letters = 0
		}
	case inSequence, !ends && inEscape && strings.IndexByte(inEscapes, c) >= 0:
		e.written = true
	default:
		e.letters, e.broken, e.written = 0, false, false
	}
}

// inEscapes are the bytes of escapes that are no letters of base64, beside blanks. The last is that of a line's end of quoted-printable.
const inEscapes = `\&%#;{}=`

func (*events) within(needles *needles) bool { return needles.hasBlankLine }

// envelopes are messages behind a byte of flags and their lengths, as of gRPC, gRPC-Web and Connect.
type envelopes struct {
	head   []byte
	left   uint64 // bytes of the message that are to come
	broken bool   // there was a head that is none
}

func (e *envelopes) take(more []byte) (end int) {
	const headSize, flags = 5, 0x83
	end = -1
	for at := 0; at < len(more) && !e.broken; {
		if len(e.head) < headSize {
			n := min(headSize-len(e.head), len(more)-at)
			e.head, at = append(e.head, more[at:at+n]...), at+n
			if e.broken = e.head[0]&^flags != 0; e.broken || len(e.head) < headSize {
				break
			}
			e.left = uint64(binary.BigEndian.Uint32(e.head[1:]))
		}
		n := min(e.left, uint64(len(more)-at))
		at, e.left = at+int(n), e.left-n
		if e.left == 0 {
			end, e.head = at, e.head[:0]
		}
	}
	return end
}

func (*envelopes) within(*needles) bool { return false } // their ends are no letters

// eventStream are AWS's messages, which say how long they are, and end with a checksum of all before it. Nobody
// has that fit at a place within a text that they don't know.
type eventStream struct {
	head   []byte // the first eight bytes: the message's length, and its headers'
	left   uint64 // bytes that are to come of what the checksum is of
	sum    uint32 // of what has come
	tail   []byte // the checksum
	broken bool   // there was one that does not fit
}

func (e *eventStream) take(more []byte) (end int) {
	const headSize, sumSize, shortest = 8, 4, 16
	end = -1
	for at := 0; at < len(more) && !e.broken; {
		if len(e.head) < headSize {
			n := min(headSize-len(e.head), len(more)-at)
			e.head, at = append(e.head, more[at:at+n]...), at+n
			if len(e.head) < headSize {
				break
			}
			size := uint64(binary.BigEndian.Uint32(e.head))
			e.broken, e.left, e.sum = size < shortest, max(size, shortest)-headSize-sumSize, crc32.ChecksumIEEE(e.head)
			continue
		}
		n := min(e.left, uint64(len(more)-at))
		e.sum = crc32.Update(e.sum, crc32.IEEETable, more[at:at+int(n)])
		at, e.left = at+int(n), e.left-n
		if e.left > 0 {
			break
		}
		k := min(sumSize-len(e.tail), len(more)-at)
		if e.tail, at = append(e.tail, more[at:at+k]...), at+k; len(e.tail) == sumSize {
			if e.broken = binary.BigEndian.Uint32(e.tail) != e.sum; !e.broken {
				end = at
			}
			e.head, e.tail = e.head[:0], e.tail[:0]
		}
	}
	return end
}

func (*eventStream) within(*needles) bool { return false } // a checksum is between
