package channel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// writes counts Write calls.
type writes struct {
	bytes.Buffer
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.Buffer.Write(p)
}

func TestFramesRoundTrip(t *testing.T) {
	var wire writes
	w := NewWriter(&wire)
	payloads := [][]byte{nil, []byte("x"), bytes.Repeat([]byte("ab"), MaxPayload/2)}
	for _, p := range payloads {
		if err := w.WriteFrame(FrameStdout, p); err != nil {
			t.Fatal(err)
		}
	}
	if wire.n != len(payloads) {
		t.Errorf("%d frames took %d writes", len(payloads), wire.n)
	}
	wire.WriteString("raw")
	rest := iotest.OneByteReader(&wire.Buffer)
	r := NewReader(rest)
	for _, want := range payloads {
		kind, got, err := r.ReadFrame()
		if err != nil || kind != FrameStdout || !bytes.Equal(got, want) {
			t.Fatalf("got type %d, %d bytes, %v; want %d bytes", kind, len(got), err, len(want))
		}
	}
	if after, err := io.ReadAll(rest); err != nil || string(after) != "raw" {
		t.Errorf("the reader took bytes past the frame: %q left, %v", after, err)
	}
}

func TestReaderRefuses(t *testing.T) {
	header := func(kind FrameType, length uint32, payload string) string {
		b := binary.BigEndian.AppendUint32([]byte{byte(kind)}, length)
		return string(b) + payload
	}
	tests := []struct {
		name, wire string
		want       error // io.EOF, io.ErrUnexpectedEOF or fault.ErrInvalid
	}{
		{"end", "", io.EOF},
		{"half a header", "\x04\x00", io.ErrUnexpectedEOF},
		{"half a payload", header(FrameStdout, 5, "abc"), io.ErrUnexpectedEOF},
		{"no payload at all", header(FrameStdout, 5, ""), io.ErrUnexpectedEOF},
		{"type 0", header(0, 0, ""), fault.ErrInvalid},
		{"type 12", header(12, 1, "x"), fault.ErrInvalid},
		{"type 255", header(255, 1<<31, ""), fault.ErrInvalid},
		{"one byte too long", header(FrameStdout, MaxPayload+1, strings.Repeat("x", MaxPayload+1)), fault.ErrInvalid},
		{"2^31", header(FrameStdin, 1<<31, ""), fault.ErrInvalid},
		{"2^32-1", header(FrameOpen, 1<<32-1, ""), fault.ErrInvalid},
		{"JSON one byte too long", header(FrameReply, MaxJSON+1, ""), fault.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.wire))
			if _, _, err := r.ReadFrame(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if len(r.buf) > 16<<10 {
				t.Errorf("a refused frame made the reader allocate %d bytes", len(r.buf))
			}
		})
	}
}

func TestWriterRefuses(t *testing.T) {
	var wire bytes.Buffer
	w := NewWriter(&wire)
	for _, err := range []error{
		w.WriteFrame(0, nil),
		w.WriteFrame(FrameStdout, make([]byte, MaxPayload+1)),
		w.WriteFrame(FrameOpen, make([]byte, MaxJSON+1)),
	} {
		if _, ok := errors.AsType[*FrameError](err); !ok {
			t.Errorf("got %v, want a *FrameError", err)
		}
	}
	if wire.Len() != 0 {
		t.Errorf("a refused frame left %d bytes on the wire", wire.Len())
	}
}

func TestJSON(t *testing.T) {
	var wire bytes.Buffer
	want := Call{Kind: CallExec, Exec: &Exec{ID: "1", Argv: []string{"a b", "\x00", "--"}, PTY: &WindowSize{Rows: 2, Cols: 3}}}
	if err := NewWriter(&wire).WriteJSON(FrameOpen, want); err != nil {
		t.Fatal(err)
	}
	var got Call
	if err := NewReader(&wire).ReadStrictJSON(FrameOpen, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestJSONRefuses(t *testing.T) {
	deep := `{"kind":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	tests := []struct {
		name, payload   string
		kind            FrameType
		lenient, strict bool // accepted
	}{
		{"right", `{"kind":"ping"}`, FrameOpen, true, true},
		{"unknown field", `{"kind":"ping","more":1}`, FrameOpen, true, false},
		{"something after it", `{"kind":"ping"}{}`, FrameOpen, false, false},
		{"wrong type of frame", `{"kind":"ping"}`, FrameStdout, false, false},
		{"wrong type of value", `{"kind":1}`, FrameOpen, false, false},
		{"cut off", `{"kind":"ping"`, FrameOpen, false, false},
		{"empty", ``, FrameOpen, false, false},
		{"deeply nested", deep, FrameOpen, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var wire bytes.Buffer
			if err := NewWriter(&wire).WriteFrame(tt.kind, []byte(tt.payload)); err != nil {
				t.Fatal(err)
			}
			var call Call
			if err := NewReader(bytes.NewReader(wire.Bytes())).ReadJSON(FrameOpen, &call); (err == nil) != tt.lenient {
				t.Errorf("lenient: %v", err)
			}
			if err := NewReader(&wire).ReadStrictJSON(FrameOpen, &call); (err == nil) != tt.strict {
				t.Errorf("strict: %v", err)
			}
		})
	}
}

// FuzzReadFrame: whatever comes, the reader neither panics nor keeps more than
// the largest frame, and what it accepts is written back byte for byte.
func FuzzReadFrame(f *testing.F) {
	for _, seed := range []string{
		"", "\x04\x00\x00\x00\x03abc", "\x01\x00\x00\x00\x02{}", "\x00\x00\x00\x00\x00", "\x04\xff\xff\xff\xff",
		"\x03\x00\x00\x00\x00\x06\x00\x00\x00\x0a{\"code\":0}", "\x02\x00\x04\x00\x01", "\x09\x00\x00\x00\x05{\"by", "\x04\x80\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := NewReader(bytes.NewReader(wire))
		var back bytes.Buffer
		w := NewWriter(&back)
		for {
			kind, payload, err := r.ReadFrame()
			if err != nil {
				break
			}
			if err := w.WriteFrame(kind, payload); err != nil {
				t.Fatalf("read what it would not write: %v", err)
			}
			var exit Exit
			_ = DecodeJSON(kind, payload, &exit)
			_ = DecodeStrictJSON(kind, payload, &exit)
		}
		if len(r.buf) > MaxJSON {
			t.Errorf("kept %d bytes", len(r.buf))
		}
		if !bytes.HasPrefix(wire, back.Bytes()) {
			t.Error("what was read is not what was on the wire")
		}
	})
}

func BenchmarkWriteFrame(b *testing.B) {
	w, payload := NewWriter(io.Discard), make([]byte, 32<<10)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteFrame(FrameStdout, payload); err != nil {
			b.Fatal(err)
		}
	}
}
