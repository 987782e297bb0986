package exchange

import (
	"bytes"
	"encoding/binary"
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

// framingOf is what an answer's type says of its form; nil: nothing.
func framingOf(h http.Header) framing {
	values := h.Values("Content-Type")
	if len(values) != 1 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(values[0])
	switch {
	case err != nil:
		return nil
	case kind == "text/event-stream":
		return &events{begins: true}
	case slices.Contains([]string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/jsonlines", "application/json-seq", "application/stream+json"}, kind):
		return lines{}
	case strings.HasPrefix(kind, "application/grpc-web-text"): // whose heads are in base64
		return nil
	case kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+") || strings.HasPrefix(kind, "application/grpc-web") || strings.HasPrefix(kind, "application/connect+"):
		return &envelopes{flags: 1}
	case kind == "application/vnd.amazon.eventstream":
		return &envelopes{includes: true}
	}
	return nil
}

// lines are messages of one line each.
type lines struct{}

func (lines) take(more []byte) int {
	if at := bytes.LastIndexByte(more, '\n'); at >= 0 {
		return at + 1
	}
	return -1
}

func (lines) within(needles *needles) bool { return needles.hasBreak }

// events are messages that a blank line ends, as server-sent events are. Lines end with LF, CR, or both.
type events struct {
	begins bool // a line does
	cr     bool // the last byte was a CR
	ended  bool // a message has, with it
}

func (e *events) take(more []byte) (end int) {
	end = -1
	for i, c := range more {
		switch {
		case c == '\n' && e.cr: // of the line's end that has begun
			if e.ended {
				end = i + 1
			}
			e.cr = false
			continue
		case c == '\n' || c == '\r':
			if e.ended = e.begins; e.ended {
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

func (*events) within(needles *needles) bool { return needles.hasBlankLine }

// envelopes are messages behind their lengths.
type envelopes struct {
	flags    int  // bytes before a length, which has four
	includes bool // a length counts itself and what is before it

	head []byte
	left uint64 // bytes of the message that are to come
}

func (e *envelopes) take(more []byte) (end int) {
	end = -1
	headSize := e.flags + 4
	for at := 0; at < len(more); {
		if len(e.head) < headSize {
			n := min(headSize-len(e.head), len(more)-at)
			e.head, at = append(e.head, more[at:at+n]...), at+n
			if len(e.head) < headSize {
				break
			}
			if e.left = uint64(binary.BigEndian.Uint32(e.head[e.flags:])); e.includes {
				e.left = max(e.left, uint64(headSize)) - uint64(headSize)
			}
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
