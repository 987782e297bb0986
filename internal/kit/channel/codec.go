package channel

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// FrameError is a frame that breaks the rules: an unknown type, a length past
// the type's limit, a type that does not belong here, or JSON that does not
// decode. It is of category fault.ErrInvalid, and the stream it came on is of
// no use any more.
type FrameError struct {
	Type    FrameType
	Length  uint32 // as the header claims; no byte of it was read if it is past the limit
	Problem string
}

// Error says which frame and what is wrong with it.
func (e *FrameError) Error() string {
	return fmt.Sprintf("bad frame (type %d, %d bytes): %s", e.Type, e.Length, e.Problem)
}

// Unwrap gives the category.
func (e *FrameError) Unwrap() error { return fault.ErrInvalid }

// Limit is the largest payload in bytes of a frame of type t; 0 and false for
// a type that does not exist.
func (t FrameType) Limit() (int, bool) {
	switch t {
	case FrameOpen, FrameReply:
		return MaxJSON, true
	case FrameStdin, FrameStdout, FrameStderr, FrameExit, FrameResize, FrameSignal, FrameGap, FrameStarted, FrameEvent:
		return MaxPayload, true
	default:
		return 0, false
	}
}

// Reader decodes frames from an io.Reader. It reads exactly a header and then
// exactly a payload, never a byte more, so that whatever follows a frame can be
// read from the underlying reader. Not for concurrent use.
type Reader struct {
	r   io.Reader
	hdr [HeaderSize]byte
	buf []byte // grows to the largest payload that really arrived
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// ReadFrame returns the next frame. The payload is valid until the next call.
// At a frame border the end is io.EOF, within a frame io.ErrUnexpectedEOF; a
// frame that breaks the rules is a *FrameError.
func (r *Reader) ReadFrame() (FrameType, []byte, error) {
	if _, err := io.ReadFull(r.r, r.hdr[:]); err != nil {
		return 0, nil, err
	}
	t, length := FrameType(r.hdr[0]), binary.BigEndian.Uint32(r.hdr[1:])
	limit, known := t.Limit()
	if !known {
		return 0, nil, &FrameError{Type: t, Length: length, Problem: "no such type"}
	}
	if uint64(length) > uint64(limit) {
		return 0, nil, &FrameError{Type: t, Length: length, Problem: fmt.Sprintf("longer than %d bytes", limit)}
	}
	payload, err := r.payload(int(length))
	if err != nil {
		return 0, nil, err
	}
	return t, payload, nil
}

// payload reads n bytes in steps, so that a header's claim alone makes nobody
// allocate.
func (r *Reader) payload(n int) ([]byte, error) {
	const step = 16 << 10
	for have := 0; have < n; {
		want := min(n, max(have+step, min(len(r.buf), n)))
		if want > len(r.buf) {
			grown := make([]byte, min(MaxJSON, max(want, 2*len(r.buf))))
			copy(grown, r.buf[:have])
			r.buf = grown
		}
		got, err := io.ReadFull(r.r, r.buf[have:want])
		have += got
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return r.buf[:n], nil
}

// ReadJSON reads one frame, which must be of type t, into v. Unknown fields are
// ignored (a newer peer may send more); anything after the value is an error.
func (r *Reader) ReadJSON(t FrameType, v any) error { return r.readJSON(t, v, false) }

// ReadStrictJSON reads as ReadJSON does, and refuses unknown fields.
func (r *Reader) ReadStrictJSON(t FrameType, v any) error { return r.readJSON(t, v, true) }

func (r *Reader) readJSON(t FrameType, v any, strict bool) error {
	got, payload, err := r.ReadFrame()
	if err != nil {
		return err
	}
	if got != t {
		return &FrameError{Type: got, Length: uint32(len(payload)), Problem: fmt.Sprintf("type %d was expected", t)}
	}
	if strict {
		return DecodeStrictJSON(t, payload, v)
	}
	return DecodeJSON(t, payload, v)
}

// DecodeJSON decodes the payload of a frame of type t that was already read.
// Unknown fields are ignored.
func DecodeJSON(t FrameType, payload []byte, v any) error { return decodeJSON(t, payload, v, false) }

// DecodeStrictJSON decodes as DecodeJSON does, and refuses unknown fields.
func DecodeStrictJSON(t FrameType, payload []byte, v any) error {
	return decodeJSON(t, payload, v, true)
}

func decodeJSON(t FrameType, payload []byte, v any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(payload))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return &FrameError{Type: t, Length: uint32(len(payload)), Problem: "not the JSON expected: " + err.Error()}
	}
	return nil
}

// Writer encodes frames to an io.Writer, each in one Write. Safe for
// concurrent use: frames never interleave.
type Writer struct {
	mu  sync.Mutex // guards buf, and the order of frames on w
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// WriteFrame writes one frame. A payload past the type's limit is refused with
// a *FrameError and nothing is written; split it.
func (w *Writer) WriteFrame(t FrameType, payload []byte) error {
	limit, known := t.Limit()
	if !known {
		return &FrameError{Type: t, Length: uint32(min(len(payload), 1<<31)), Problem: "no such type"}
	}
	if len(payload) > limit {
		return &FrameError{Type: t, Length: uint32(min(len(payload), 1<<31)), Problem: fmt.Sprintf("longer than %d bytes", limit)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], byte(t), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(w.buf[1:], uint32(len(payload)))
	w.buf = append(w.buf, payload...)
	_, err := w.w.Write(w.buf)
	return err
}

// WriteJSON writes v as the payload of one frame of type t.
func (w *Writer) WriteJSON(t FrameType, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a frame of type %d: %w", t, err)
	}
	return w.WriteFrame(t, payload)
}
