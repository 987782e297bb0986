package e2b

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// The Connect protocol, as far as clients of this wire use it: JSON or binary
// messages, no compression, unary calls, server streams and one client stream. Clients come with HTTP/1.1
// and, over TLS, with HTTP/2.
const (
	maxMessage     = 4 << 20 // bytes of a message from a client
	envelopeSize   = 5       // one byte flags, four bytes big-endian length
	flagCompressed = 1
	flagEnd        = 2 // the last message of a stream
	typeUnary      = "application/json"
	typeStream     = "application/connect+json"

	typeUnaryProto  = "application/proto"
	typeStreamProto = "application/connect+proto"
)

// bodyTimeout is how long a client may take to send a whole message.
const bodyTimeout = 30 * time.Second

// checkUnary refuses what is no unary call of this protocol, and tells whether its
// messages are binary.
func checkUnary(r *http.Request) (inProto bool, err error) {
	return checkCall(r, "Content-Encoding", typeUnary, typeUnaryProto)
}

// checkStream does the same for a server stream.
func checkStream(r *http.Request) (inProto bool, err error) {
	return checkCall(r, "Connect-Content-Encoding", typeStream, typeStreamProto)
}

// unsupportedMedia is a request that is not of this protocol at all: HTTP answers.
type unsupportedMedia struct{ wanted string }

func (u *unsupportedMedia) Error() string {
	return "this call takes " + u.wanted
}

func checkCall(r *http.Request, encodingHeader, plain, proto string) (inProto bool, err error) {
	got, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if inProto = got == proto; err != nil || !inProto && got != plain {
		return false, &unsupportedMedia{wanted: "Content-Type: " + plain + " or " + proto}
	}
	if charset, given := params["charset"]; given && charset != "utf-8" && charset != "UTF-8" {
		return inProto, &unsupportedMedia{wanted: "UTF-8"}
	}
	if v := r.Header.Get("Connect-Protocol-Version"); v != "" && v != "1" {
		return inProto, refuseWith(codeInvalid, "Connect-Protocol-Version %.20q is not known: 1 is", v)
	}
	if encoding := r.Header.Get(encodingHeader); encoding != "" && encoding != "identity" {
		return inProto, refuseWith(codeUnimplemented, "the compression %.40q is not supported: send messages as they are", encoding)
	}
	return inProto, nil
}

// timeoutOf reads Connect-Timeout-Ms; 0: there is none.
func timeoutOf(r *http.Request) (time.Duration, error) {
	text := r.Header.Get("Connect-Timeout-Ms")
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseUint(text, 10, 63)
	if err != nil || len(text) > 10 {
		return 0, refuseWith(codeInvalid, "Connect-Timeout-Ms %.20q is not a number of milliseconds of up to 10 digits", text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// readUnary decodes the message of a unary call.
func readUnary(w http.ResponseWriter, c *call, v any) error {
	defer limitBody(w)()
	body, err := io.ReadAll(io.LimitReader(backend.Held(c.Context(), c.Body), maxMessage+1))
	switch {
	case errors.Is(err, fault.ErrExhausted):
		return err
	case err != nil:
		return refuseWith(codeInvalid, "the message did not come whole: %v", err)
	case len(body) > maxMessage:
		return refuseWith(codeExhausted, "the message is larger than %d bytes", maxMessage)
	case len(body) == 0 || c.codec == nil && len(bytes.TrimSpace(body)) == 0:
		return nil // the message without fields
	}
	return c.decodeMessage(body, v)
}

// readEnvelope decodes the one message that a client sends to open a server
// stream, and makes sure that nothing follows it.
func readEnvelope(w http.ResponseWriter, c *call, v any) error {
	defer limitBody(w)()
	payload, err := nextEnvelope(backend.Held(c.Context(), c.Body))
	if err != nil {
		return err
	}
	var more [1]byte
	if n, err := io.ReadFull(c.Body, more[:]); n > 0 || !errors.Is(err, io.EOF) {
		return refuseWith(codeInvalid, "the call takes one message, and something follows it")
	}
	return c.decodeMessage(payload, v)
}

// decodeMessage decodes a message for which there is room once it is decoded.
func (c *call) decodeMessage(data []byte, v any) error {
	var err error
	if c.codec == nil {
		err = backend.TakeDecoded(c.Context(), data, v)
	} else {
		err = backend.Take(c.Context(), decodedSize(data, c.codec.in, 0))
	}
	if err != nil {
		return err
	}
	return c.codec.decodeMessage(data, v)
}

// nextEnvelope reads one enveloped message.
func nextEnvelope(body io.Reader) ([]byte, error) {
	var head [envelopeSize]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return nil, refuseWith(codeInvalid, "the call has no message: %v", err)
	}
	return restOfEnvelope(head[0], binary.BigEndian.Uint32(head[1:]), body)
}

// restOfEnvelope reads the message behind an envelope's head.
func restOfEnvelope(flags byte, length uint32, body io.Reader) ([]byte, error) {
	switch {
	case flags&flagCompressed != 0:
		return nil, refuseWith(codeInternal, "the message is compressed, and no compression was agreed on")
	case flags != 0:
		return nil, refuseWith(codeInvalid, "the message has unknown flags %#x", flags)
	case length > maxMessage:
		return nil, refuseWith(codeExhausted, "the message is larger than %d bytes", maxMessage)
	}
	var payload bytes.Buffer // grows with what really comes, not with what is claimed
	n, err := io.CopyN(&payload, body, int64(length))
	if errors.Is(err, fault.ErrExhausted) {
		return nil, err
	}
	if err != nil {
		return nil, refuseWith(codeInvalid, "the message ends after %d of %d bytes", n, length)
	}
	return payload.Bytes(), nil
}

// limitBody gives a client a deadline for its message; the result takes it back.
func limitBody(w http.ResponseWriter) func() {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTimeout)) != nil {
		return func() {} // a writer of tests, which has no connection
	}
	return func() { _ = control.SetReadDeadline(time.Time{}) }
}

// binaryCopies is how often an answer is in memory that becomes a binary message: as it is, as JSON, as
// fields, and as bytes.
const binaryCopies = 4

// writeUnary answers a unary call.
func writeUnary(w http.ResponseWriter, c *call, v any) error {
	if c.codec == nil {
		return backend.WriteJSON(c.Context(), w, http.StatusOK, v)
	}
	if err := backend.Reserve(c.Context(), binaryCopies*backend.SizeOf(v)); err != nil {
		return err
	}
	data, err := c.codec.encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", c.codec.unaryType())
	return backend.WriteBytes(w, data)
}

// connectStream is the answer to a server-streaming call. Each message is flushed.
// Safe for concurrent use.
type connectStream struct {
	control *http.ResponseController
	codec   *codec
	release func() // takes back that ctx's end cuts writes off

	mu  sync.Mutex // guards what follows, and the order of messages
	w   http.ResponseWriter
	buf bytes.Buffer
}

// openStream begins the answer. When ctx ends before close, what is being
// written is cut off, so that a client that does not read keeps nobody here; the
// connection is of no use then.
func openStream(ctx context.Context, w http.ResponseWriter, k *codec) *connectStream {
	s := &connectStream{w: w, codec: k, control: http.NewResponseController(w)}
	s.release = safego.Until(ctx, func() { // w is of no use to anybody once its handler has returned
		until := time.Now()
		if errors.Is(context.Cause(ctx), token.ErrOver) { // whom it is over for hears why
			until = until.Add(lastWord)
		}
		_ = s.control.SetWriteDeadline(until)
	})
	w.Header().Set("Content-Type", k.stream())
	w.WriteHeader(http.StatusOK)
	return s
}

// lastWord is how long a client may take for the reason of its stream's end.
const lastWord = 2 * time.Second

// closeStream must follow, once. Nothing is sent after it, and nothing touches the answer.
func (s *connectStream) closeStream() { s.release() }

// sendMessage writes one message.
func (s *connectStream) sendMessage(v any) error { return s.writeMessage(0, s.codec, v) }

// endStream writes the last message, which is JSON in either form: err, or with nil that all
// is well.
func (s *connectStream) endStream(err error) {
	var last struct {
		Error *failure `json:"error,omitempty"`
	}
	if err != nil {
		last.Error = failureOf(err)
	}
	_ = s.writeMessage(flagEnd, nil, last) // a client that is gone is its own loss
}

// sendBytes writes a data event of a process without a detour through
// encoding/json: there may be much of it. output is a plain name.
func (s *connectStream) sendBytes(output string, p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginMessage(0)
	if s.codec != nil {
		s.buf.Write(s.codec.output(output, p))
		return s.flushMessages()
	}
	s.buf.WriteString(`{"event":{"data":{"` + output + `":"`)
	s.buf.Write(base64.StdEncoding.AppendEncode(s.buf.AvailableBuffer(), p))
	s.buf.WriteString(`"}}}`)
	return s.flushMessages()
}

func (s *connectStream) writeMessage(flags byte, k *codec, v any) error {
	message, err := k.encode(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginMessage(flags)
	s.buf.Write(message)
	return s.flushMessages()
}

// beginMessage and flush need mu.
func (s *connectStream) beginMessage(flags byte) {
	s.buf.Reset()
	s.buf.Write([]byte{flags, 0, 0, 0, 0})
}

func (s *connectStream) flushMessages() error {
	message := s.buf.Bytes()
	binary.BigEndian.PutUint32(message[1:], uint32(len(message)-envelopeSize))
	if _, err := s.w.Write(message); err != nil {
		return err
	}
	return s.control.Flush()
}
