package channel

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// replies gives the host's end of a stream on which a guest does as told.
func replies(t *testing.T, guest func(*Conn)) *Conn {
	t.Helper()
	host, other := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer other.Close()
		guest(NewConn(other))
	}()
	t.Cleanup(func() {
		_ = host.Close()
		<-done
	})
	return NewConn(host)
}

func TestReplyErrors(t *testing.T) {
	escaped := Reply{Error: strings.Repeat("\xff\u202e", 5000)}
	if err := escaped.Err(); len(err.Error()) > 1200 {
		t.Errorf("what is escaped is %d bytes long", len(err.Error()))
	}
	for code, want := range map[ErrorCode]error{
		CodeNotFound: fault.ErrNotFound, CodeExists: fault.ErrConflict, CodePermission: fault.ErrForbidden, CodeInvalid: fault.ErrInvalid,
		CodeNoSpace: fault.ErrExhausted, "": fault.ErrUnavailable, "new": fault.ErrUnavailable,
	} {
		reply := Reply{Code: code, Error: "\x1b[31mno\nsuch " + strings.Repeat("\u00e9", 5000)}
		err := reply.Err()
		if !errors.Is(err, want) || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 1200 || !utf8.ValidString(err.Error()) {
			t.Errorf("%q: %.80q", code, err)
		}
	}
}

// A guest's words about a file are held to what a file can be.
func TestFileInfoIsTrimmed(t *testing.T) {
	metadata := map[string]string{"": "x", strings.Repeat("n", 9999): strings.Repeat("v", 99999)}
	for i := range 1000 {
		metadata[strings.Repeat("m", i+1)] = "v"
	}
	claim, err := json.Marshal(FileInfo{
		Path: strings.Repeat("\u65e5", 5000), Target: strings.Repeat("t", 9999), Owner: strings.Repeat("o", 999), Group: "g", Kind: "wormhole", Resolved: strings.Repeat("r", 9999), Leads: FileKind(strings.Repeat("l", 9999)),
		Size: -5, Mode: 1<<31 | 0o644, Metadata: metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
	reply := Reply{OK: true, Body: claim}
	info, err := reply.FileInfo()
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Path) > 4096 || !utf8.ValidString(info.Path) || len(info.Target) != 4096 || len(info.Owner) != 255 || info.Kind != KindOther || info.Size != 0 || info.Mode != 0o644 || len(info.Metadata) > MaxMetadata {
		t.Errorf("%d %d %d %q %d %o %d", len(info.Path), len(info.Target), len(info.Owner), info.Kind, info.Size, info.Mode, len(info.Metadata))
	}
	if len(info.Resolved) != 4096 || info.Leads != KindOther {
		t.Errorf("it leads to %d bytes, of the kind %.40q", len(info.Resolved), info.Leads)
	}
	if got := cutUTF8("ab\xffcd\xc3", 5); got != "ab\uFFFDcd" {
		t.Errorf("%q", got)
	}
	if _, err := (&Reply{OK: true, Body: []byte(`{"size":"x"}`)}).FileInfo(); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func says(t *testing.T, c *Conn, kind FrameType, payload string) {
	t.Helper()
	_ = c.WriteFrame(kind, []byte(payload)) // the host may have left
}

// A guest that sends more, or less, or something else, is no end of a file.
func TestFileReader(t *testing.T) {
	tests := map[string]struct {
		guest func(*Conn)
		size  int64
		want  error
	}{
		"whole":   {func(c *Conn) { says(t, c, FrameStdout, "abc"); says(t, c, FrameReply, `{"ok":true}`) }, 3, nil},
		"empty":   {func(c *Conn) { says(t, c, FrameReply, `{"ok":true}`) }, 0, nil},
		"more":    {func(c *Conn) { says(t, c, FrameStdout, "abcd"); says(t, c, FrameReply, `{"ok":true}`) }, 3, fault.ErrUnavailable},
		"less":    {func(c *Conn) { says(t, c, FrameStdout, "ab"); says(t, c, FrameReply, `{"ok":true}`) }, 3, fault.ErrUnavailable},
		"cut":     {func(c *Conn) { says(t, c, FrameStdout, "ab") }, 3, fault.ErrUnavailable},
		"failed":  {func(c *Conn) { says(t, c, FrameReply, `{"error":"no","code":"permission"}`) }, 3, fault.ErrForbidden},
		"strange": {func(c *Conn) { says(t, c, FrameExit, "{}") }, 3, fault.ErrUnavailable},
		"garbage": {func(c *Conn) { says(t, c, FrameReply, "{") }, 3, fault.ErrUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(NewFileReader(replies(t, tt.guest), tt.size))
			if !errors.Is(err, tt.want) || int64(len(got)) > tt.size || tt.want != nil && !errors.Is(fault.KindOf(err).Category, tt.want) {
				t.Errorf("%q, %v, want %v", got, err, tt.want)
			}
			var b strings.Builder
			if _, err := NewFileReader(replies(t, tt.guest), tt.size).WriteTo(&b); !errors.Is(err, tt.want) {
				t.Errorf("WriteTo: %v, want %v", err, tt.want)
			}
		})
	}
}

// unending never ends, so that only the guest's word can end a write of it.
type unending struct{}

func (unending) Read(p []byte) (int, error) { return len(p), nil }

func TestWriteFile(t *testing.T) {
	taken := func(c *Conn) (n int) {
		for {
			kind, payload, err := c.ReadFrame()
			if err != nil || kind != FrameStdin || len(payload) == 0 {
				return n
			}
			n += len(payload)
		}
	}
	info, err := WriteFile(replies(t, func(c *Conn) {
		body, _ := json.Marshal(FileInfo{Path: "/x", Kind: KindFile, Size: int64(taken(c))})
		_ = c.WriteJSON(FrameReply, Reply{OK: true, Body: body})
	}), strings.NewReader(strings.Repeat("x", 200_000)), nil)
	if err != nil || info.Size != 200_000 {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = WriteFile(replies(t, func(c *Conn) {
		_, _, _ = c.ReadFrame()
		_ = c.WriteJSON(FrameReply, Reply{Error: "full", Code: CodeNoSpace})
		<-t.Context().Done() // it stays, and reads no more
	}), unending{}, nil)
	if full, ok := errors.AsType[*FileError](err); !ok || full.Code != CodeNoSpace || !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("a disk that is full: %v", err)
	}
	_, err = WriteFile(replies(t, func(c *Conn) {
		_, _, _ = c.ReadFrame()
		_ = c.WriteJSON(FrameReply, Reply{OK: true})
	}), unending{}, nil)
	if !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a part that is said to be all: %v", err)
	}
	_, err = WriteFile(replies(t, func(c *Conn) { _, _, _ = c.ReadFrame() }), unending{}, nil)
	if !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a guest that leaves: %v", err)
	}
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF} { // the second is what a cut request's body says
		var ended atomic.Bool
		_, err = WriteFile(replies(t, func(c *Conn) {
			for {
				kind, payload, err := c.ReadFrame()
				if err != nil {
					return
				}
				if kind == FrameStdin && len(payload) == 0 {
					ended.Store(true)
				}
			}
		}), io.MultiReader(strings.NewReader("x"), &failingSource{broken}), nil)
		if !errors.Is(err, broken) || ended.Load() {
			t.Errorf("a source that breaks: %v, told as whole: %t", err, ended.Load())
		}
	}
}

type failingSource struct{ err error }

func (f *failingSource) Read([]byte) (int, error) { return 0, f.err }

func TestReadListIsBounded(t *testing.T) {
	part := `{"entries":[` + strings.TrimSuffix(strings.Repeat(`{"path":"/x"},`, 4000), ",") + `]}`
	got := 0
	err := ReadList(replies(t, func(c *Conn) {
		for range MaxListEntries/4000 + 1 {
			says(t, c, FrameEvent, part)
		}
		says(t, c, FrameReply, `{"ok":true}`)
	}), func(part []FileInfo) error { got += len(part); return nil })
	if !errors.Is(err, fault.ErrUnavailable) || got > MaxListEntries {
		t.Errorf("%d entries, %v", got, err)
	}
	enough := errors.New("enough")
	err = ReadList(replies(t, func(c *Conn) { says(t, c, FrameEvent, part) }), func([]FileInfo) error { return enough })
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestWriteFileCuts: where the guest answers while its host waits for more to send, the
// waiting is ended.
func TestWriteFileCuts(t *testing.T) {
	from, source := io.Pipe()
	conn := replies(t, func(c *Conn) { _ = c.WriteJSON(FrameReply, Reply{Error: "no", Code: CodePermission}) })
	_, err := WriteFile(conn, from, func() { _ = source.CloseWithError(io.ErrClosedPipe) })
	if !errors.Is(err, fault.ErrForbidden) {
		t.Error(err)
	}
}

func TestDecodeEvents(t *testing.T) {
	for name, c := range map[string]struct {
		kind    FrameType
		payload string
		events  int
		lost    bool
		err     error
	}{
		"changes":    {FrameEvent, `{"events":[{"name":"a","change":"create"},{"name":"b","change":"explode"}],"lost":true}`, 1, true, nil},
		"no JSON":    {FrameEvent, `{`, 0, false, fault.ErrUnavailable},
		"the end":    {FrameReply, `{"ok":true}`, 0, false, io.EOF},
		"an error":   {FrameReply, `{"error":"gone","code":"not_found"}`, 0, false, fault.ErrNotFound},
		"a stranger": {FrameStdout, `x`, 0, false, fault.ErrUnavailable},
	} {
		events, err := DecodeEvents(c.kind, []byte(c.payload))
		if !errors.Is(err, c.err) || len(events.Events) != c.events || events.Lost != c.lost {
			t.Errorf("%s: %+v, %v", name, events, err)
		}
	}
}
