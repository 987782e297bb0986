package channel

import (
	"errors"
	"fmt"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

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
	if err := r.fillBuffer(); err != nil {
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
		if err := r.fillBuffer(); err != nil {
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

// fillBuffer makes sure that left is not empty.
func (r *FileReader) fillBuffer() error {
	for len(r.left) == 0 && r.err == nil {
		kind, payload, err := r.conn.ReadFrame()
		switch {
		case err != nil:
			r.err = BrokenOff(err)
		case kind == FrameStdout:
			if r.size -= int64(len(payload)); r.size < 0 {
				r.err = fault.New(fault.ErrUnavailable, "the sandbox's agent sent more than the file has")
			}
			r.left = payload
		case kind == FrameReply:
			r.err = r.readLast(payload)
		default:
			r.err = stranger(kind, payload)
		}
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

func (r *FileReader) readLast(payload []byte) error {
	if _, err := lastReply(payload); err != nil {
		return err
	}
	if r.size > 0 {
		return fault.New(fault.ErrUnavailable, "the sandbox's agent sent less than the file has")
	}
	return io.EOF
}

// ReadList hands what a FileList sends, after its first reply, to each, part by
// part, at most MaxListEntries in all. An error of each ends it and is returned.
func ReadList(conn *Conn, each func([]FileInfo) error) error {
	total := 0
	for {
		kind, payload, err := conn.ReadFrame()
		if err != nil {
			return BrokenOff(err)
		}
		switch kind {
		case FrameEvent:
			var part FileEntries
			if err := DecodeJSON(kind, payload, &part); err != nil {
				return nonsense(err)
			}
			if total += len(part.Entries); total > MaxListEntries {
				return fault.New(fault.ErrUnavailable, "the sandbox's agent told of more than %d files", MaxListEntries)
			}
			if err := each(part.Entries); err != nil {
				return err
			}
		case FrameReply:
			_, err := lastReply(payload)
			return err
		default:
			return stranger(kind, payload)
		}
	}
}

// DecodeEvents reads a frame of a FileWatch, after its first reply. A last reply ends the
// watch: with its error, or io.EOF.
func DecodeEvents(kind FrameType, payload []byte) (FileEvents, error) {
	var events FileEvents
	switch kind {
	case FrameEvent:
	case FrameReply:
		_, err := lastReply(payload)
		if err == nil {
			err = io.EOF
		}
		return events, err
	default:
		return events, stranger(kind, payload)
	}
	if err := DecodeJSON(kind, payload, &events); err != nil {
		return FileEvents{}, nonsense(err)
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

// lastReply reads the reply that ends an operation.
func lastReply(payload []byte) (FileInfo, error) {
	var reply Reply
	if err := DecodeJSON(FrameReply, payload, &reply); err != nil {
		return FileInfo{}, nonsense(err)
	}
	if err := reply.Err(); err != nil {
		return FileInfo{}, err
	}
	info, err := reply.FileInfo()
	if err != nil {
		return FileInfo{}, nonsense(err)
	}
	return info, nil
}

// BrokenOff is the fault of a stream of a file operation that ended before its time.
func BrokenOff(err error) error {
	if _, ok := errors.AsType[*FrameError](err); ok {
		return nonsense(err)
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the stream to the sandbox was broken off")
}

// nonsense is the fault of a guest that breaks the rules: it is none of the caller's.
func nonsense(err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's agent sent what is no answer to this operation")
}

func stranger(kind FrameType, payload []byte) error {
	return nonsense(&FrameError{Type: kind, Length: uint32(len(payload)), Problem: fmt.Sprintf("type %d does not belong to this operation", kind)})
}
