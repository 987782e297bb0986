package channel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// The longest strings of a FileInfo and a FileEvent that are believed, in bytes.
const (
	maxFilePath      = 4096
	maxFileName      = 255
	maxMetadataValue = 4 << 10
)

// Err is nil for an OK reply of a file operation, else a fault of its code's category. The
// sentence is the guest's, made one short line.
func (r *Reply) Err() error {
	if r.OK {
		return nil
	}
	category, sentence := r.Code.Category(), plainLine(r.Error, 1<<10)
	if errors.Is(category, fault.ErrUnavailable) {
		sentence = "the sandbox's agent failed: " + sentence
	}
	return fault.New(category, "%s", sentence)
}

// Category is what a guest's error about a file is here.
func (c ErrorCode) Category() error {
	switch c {
	case CodeNotFound:
		return fault.ErrNotFound
	case CodeExists:
		return fault.ErrConflict
	case CodePermission:
		return fault.ErrForbidden
	case CodeInvalid:
		return fault.ErrInvalid
	case CodeNoSpace:
		return fault.ErrExhausted
	default:
		return fault.ErrUnavailable
	}
}

// FileInfo is what an OK reply tells of a file, within limits; the zero FileInfo
// if it tells of none.
func (r *Reply) FileInfo() (FileInfo, error) {
	var info FileInfo
	if len(r.Body) == 0 {
		return info, nil
	}
	if err := json.Unmarshal(r.Body, &info); err != nil {
		return FileInfo{}, &FrameError{Type: FrameReply, Length: uint32(len(r.Body)), Problem: "it tells of no file"}
	}
	return info, nil
}

// UnmarshalJSON holds a guest's claim to what a file can be: nothing is longer
// than it may be, or no UTF-8.
func (i *FileInfo) UnmarshalJSON(data []byte) error {
	type plain FileInfo
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		return err
	}
	i.trim()
	return nil
}

// UnmarshalJSON does so with a change.
func (e *FileEvent) UnmarshalJSON(data []byte) error {
	type plain FileEvent
	if err := json.Unmarshal(data, (*plain)(e)); err != nil {
		return err
	}
	e.Name = valid(e.Name, maxFilePath)
	return nil
}

func (i *FileInfo) trim() {
	i.Path, i.Target = valid(i.Path, maxFilePath), valid(i.Target, maxFilePath)
	i.Owner, i.Group = valid(i.Owner, maxFileName), valid(i.Group, maxFileName)
	i.Size, i.Mode = max(i.Size, 0), i.Mode&0o7777
	switch i.Kind {
	case KindFile, KindDir, KindSymlink:
	case KindOther:
	default:
		i.Kind = KindOther
	}
	if len(i.Metadata) == 0 {
		return
	}
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(i.Metadata)) {
		if name != "" && len(kept) < MaxMetadata {
			kept[valid(name, maxFileName)] = valid(i.Metadata[name], maxMetadataValue)
		}
	}
	i.Metadata = kept
}

// valid cuts s to n bytes of UTF-8.
func valid(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
			r, size := utf8.DecodeLastRuneInString(s)
			if r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plainLine makes a guest's words one line without control characters.
func plainLine(s string, n int) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, valid(s, n))
}

// FileReader reads what a FileRead sends, after its first reply.
type FileReader struct {
	conn *Conn
	left []byte // of the frame that was read last
	size int64  // bytes that may still come
	err  error
}

// NewFileReader reads from a stream of FileRead whose first reply told of a file
// of size bytes. A guest that sends more is cut off.
func NewFileReader(conn *Conn, size int64) *FileReader { return &FileReader{conn: conn, size: size} }

// Read returns io.EOF only if the whole file came; else a fault.
func (r *FileReader) Read(p []byte) (int, error) {
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// WriteTo writes all of it, without a copy between.
func (r *FileReader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for {
		if err := r.fill(); err != nil {
			if err == io.EOF { //nolint:errorlint // fill returns it as it is
				err = nil
			}
			return total, err
		}
		n, err := w.Write(r.left)
		total += int64(n)
		if r.left = r.left[n:]; err != nil {
			return total, err
		}
	}
}

// fill makes sure that left is not empty.
func (r *FileReader) fill() error {
	for len(r.left) == 0 && r.err == nil {
		kind, payload, err := r.conn.ReadFrame()
		switch {
		case err != nil:
			r.err = brokenOff(err)
		case kind == FrameStdout:
			if r.size -= int64(len(payload)); r.size < 0 {
				r.err = fault.New(fault.ErrUnavailable, "the sandbox's agent sent more than the file has")
			}
			r.left = payload
		case kind == FrameReply:
			r.err = r.last(payload)
		default:
			r.err = notHere(kind, payload)
		}
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

func (r *FileReader) last(payload []byte) error {
	var reply Reply
	if err := DecodeJSON(FrameReply, payload, &reply); err != nil {
		return err
	}
	if err := reply.Err(); err != nil {
		return err
	}
	if r.size > 0 {
		return fault.New(fault.ErrUnavailable, "the sandbox's agent sent less than the file has")
	}
	return io.EOF
}

// WriteFile sends all of from on a stream of FileWrite, after its first reply, and
// returns what the guest says of the file. An error of from leaves the file in
// the sandbox as it was, and is returned as it is.
func WriteFile(conn *Conn, from io.Reader) (FileInfo, error) {
	type answer struct {
		reply Reply
		err   error
	}
	answered := make(chan answer, 1)
	errand.Go(func() { // it may come before the end
		var a answer
		a.err = errand.Try(func() error { return conn.ReadJSON(FrameReply, &a.reply) })
		answered <- a
	})
	sent := make(chan error, 1)
	stop := make(chan struct{})
	errand.Go(func() { sent <- errand.Try(func() error { return sendFile(conn, from, stop) }) })
	var a answer
	select {
	case a = <-answered:
		close(stop) // from is read to its next return, and no further
		<-sent      //nolint:errcheck // the guest has said what counts
	case err := <-sent:
		if err != nil {
			_ = conn.Close() // before the empty frame, so that nothing is changed
			<-answered
			return FileInfo{}, err
		}
		a = <-answered
	}
	if a.err != nil {
		return FileInfo{}, brokenOff(a.err)
	}
	if err := a.reply.Err(); err != nil {
		return FileInfo{}, err
	}
	return a.reply.FileInfo()
}

// sendFile sends until the end of from, and an empty frame. Its error is from's:
// of a stream that breaks the reader of the answer hears.
func sendFile(conn *Conn, from io.Reader, stop <-chan struct{}) error {
	buf := make([]byte, MaxPayload)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		n, err := readMost(from, buf)
		if n > 0 && conn.WriteFrame(FrameStdin, buf[:n]) != nil {
			return nil //nolint:nilerr // the answer tells
		}
		if err == io.EOF { //nolint:errorlint // a reader's end is this one and no other
			_ = conn.WriteFrame(FrameStdin, nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readMost fills p as far as from goes. Unlike io.ReadFull's its error is from's
// own: one that broke off with io.ErrUnexpectedEOF has not come to its end.
func readMost(from io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = from.Read(p[n:])
		n += got
	}
	return n, err
}

// ReadList hands what a FileList sends, after its first reply, to each, part by
// part, at most MaxListEntries in all. An error of each ends it and is returned.
func ReadList(conn *Conn, each func([]FileInfo) error) error {
	total := 0
	for {
		kind, payload, err := conn.ReadFrame()
		if err != nil {
			return brokenOff(err)
		}
		switch kind {
		case FrameEvent:
			var part FileEntries
			if err := DecodeJSON(kind, payload, &part); err != nil {
				return err
			}
			if total += len(part.Entries); total > MaxListEntries {
				return fault.New(fault.ErrUnavailable, "the sandbox's agent told of more than %d files", MaxListEntries)
			}
			if err := each(part.Entries); err != nil {
				return err
			}
		case FrameReply:
			var reply Reply
			if err := DecodeJSON(kind, payload, &reply); err != nil {
				return err
			}
			return reply.Err()
		default:
			return notHere(kind, payload)
		}
	}
}

// ReadEvents reads the next changes of a FileWatch, after its first reply: io.EOF
// when the watch is over.
func ReadEvents(conn *Conn) (FileEvents, error) {
	var events FileEvents
	kind, payload, err := conn.ReadFrame()
	switch {
	case err == io.EOF: //nolint:errorlint // ReadFrame returns it as it is
		return events, io.EOF
	case err != nil:
		return events, brokenOff(err)
	case kind != FrameEvent:
		return events, notHere(kind, payload)
	}
	if err := DecodeJSON(kind, bytes.Clone(payload), &events); err != nil {
		return events, err
	}
	known := events.Events[:0]
	for _, event := range events.Events {
		switch event.Change {
		case ChangeCreate, ChangeWrite, ChangeRemove, ChangeRename, ChangeChmod:
			known = append(known, event)
		}
	}
	events.Events = known
	return events, nil
}

func brokenOff(err error) error {
	if _, ok := errors.AsType[*FrameError](err); ok {
		return err
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the stream to the sandbox was broken off")
}

func notHere(kind FrameType, payload []byte) error {
	return &FrameError{Type: kind, Length: uint32(len(payload)), Problem: fmt.Sprintf("type %d does not belong to this operation", kind)}
}
