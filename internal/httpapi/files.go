package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Bounds of what names a file.
const (
	maxPath  = 4095
	maxDepth = 100
)

// fileCall is the file that a query names; which operation is for the caller to
// say.
func fileCall(q url.Values, more ...string) (channel.File, error) {
	if err := known(q, append([]string{"path", "user"}, more...)...); err != nil {
		return channel.File{}, err
	}
	f := channel.File{Path: q.Get("path"), User: q.Get("user")}
	return f, checkPath(f.Path)
}

func checkPath(path string) error {
	switch {
	case path == "":
		return fault.Invalid("give a path")
	case len(path) > maxPath || !utf8.ValidString(path) || bytes.IndexByte([]byte(path), 0) >= 0:
		return fault.Invalid("the path %.60q can't be one: at most %d bytes of UTF-8 without NUL", path, maxPath)
	}
	return nil
}

// file does an operation that is one answer.
func (s fileRoutes) file(r *http.Request, f channel.File) (channel.FileInfo, error) {
	sb, err := s.own(r)
	if err != nil {
		return channel.FileInfo{}, err
	}
	return s.cfg.Sandboxes.File(r.Context(), sb.Info().ID, f)
}

func (s fileRoutes) statFile(w http.ResponseWriter, r *http.Request) error {
	f, err := fileCall(r.URL.Query())
	if err != nil {
		return err
	}
	f.Op = channel.FileStat
	info, err := s.file(r, f)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewFile(info))
}

func (s fileRoutes) removeFile(w http.ResponseWriter, r *http.Request) error {
	f, err := fileCall(r.URL.Query())
	if err != nil {
		return err
	}
	f.Op = channel.FileRemove
	if _, err := s.file(r, f); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s fileRoutes) makeDirectory(w http.ResponseWriter, r *http.Request) error {
	var body api.MakeDirectory
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if err := checkPath(body.Path); err != nil {
		return err
	}
	info, err := s.file(r, channel.File{Op: channel.FileMkdir, Path: body.Path, User: body.User, Mode: body.Mode})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, viewFile(info))
}

func (s fileRoutes) moveFile(w http.ResponseWriter, r *http.Request) error {
	var body api.MoveFile
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if err := errors.Join(checkPath(body.Path), checkPath(body.To)); err != nil {
		return err
	}
	info, err := s.file(r, channel.File{Op: channel.FileMove, Path: body.Path, To: body.To, User: body.User})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewFile(info))
}

// open begins an operation that is a stream.
func (s fileRoutes) open(r *http.Request, f channel.File) (*channel.Conn, error) {
	sb, err := s.own(r)
	if err != nil {
		return nil, err
	}
	conn, _, err := s.cfg.Sandboxes.OpenFile(r.Context(), sb.Info().ID, f)
	if err != nil {
		return nil, err
	}
	// A guest that says nothing more must not outlast its client here.
	errand.When(r.Context(), func() { _ = conn.Close() })
	return conn, nil
}

// listFiles streams what is in a directory as JSON lines, in the order of paths.
func (s fileRoutes) listFiles(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f, err := fileCall(q, "depth")
	if err != nil {
		return err
	}
	depth, err := number(q.Get("depth"))
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return fault.Invalid("depth is %d; it is at most %d", depth, maxDepth)
	}
	f.Op, f.Depth = channel.FileList, max(int(depth), 1)
	conn, err := s.open(r, f)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the operation is over, or the client is gone
	begun := false
	out := json.NewEncoder(w)
	err = stream(conn, channel.FrameEvent, func(payload []byte) error {
		var part channel.FileEntries
		if err := channel.DecodeJSON(channel.FrameEvent, payload, &part); err != nil {
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
			begun = true
		}
		for _, entry := range part.Entries {
			if err := out.Encode(viewFile(entry)); err != nil {
				return errAnswered
			}
		}
		return nil
	})
	if err != nil && begun && !errors.Is(err, errAnswered) {
		return s.cut(r, err)
	}
	if err == nil && !begun {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
	}
	return err
}

// readFile streams a file's bytes. Its length is not told before: the file may
// change while it is read.
func (s fileRoutes) readFile(w http.ResponseWriter, r *http.Request) error {
	f, err := fileCall(r.URL.Query())
	if err != nil {
		return err
	}
	f.Op = channel.FileRead
	conn, err := s.open(r, f)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the operation is over, or the client is gone
	begun := false
	begin := func() {
		if !begun {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("X-Content-Type-Options", "nosniff") // the bytes are a guest's
			w.Header().Set("Content-Disposition", "attachment")
			w.WriteHeader(http.StatusOK)
			begun = true
		}
	}
	err = stream(conn, channel.FrameStdout, func(payload []byte) error {
		begin()
		if _, err := w.Write(payload); err != nil { //nolint:gosec // bytes for a program; begin says that no browser may show them
			return errAnswered
		}
		return nil
	})
	if err != nil && begun && !errors.Is(err, errAnswered) {
		return s.cut(r, err)
	}
	if err == nil {
		begin()
	}
	return err
}

// stream passes the payloads of one kind of frame on until the last reply.
func stream(conn *channel.Conn, kind channel.FrameType, take func([]byte) error) error {
	for {
		got, payload, err := conn.ReadFrame()
		switch {
		case err != nil:
			return fault.Wrap(fault.ErrUnavailable, err, "the sandbox's answer broke off")
		case got == kind:
			if err := take(payload); err != nil {
				return err
			}
		case got == channel.FrameReply:
			_, err := lastReply(payload)
			return err
		default:
			return fault.New(fault.ErrUnavailable, "the sandbox's answer is not one to this request")
		}
	}
}

// lastReply reads the reply that ends a stream.
func lastReply(payload []byte) (channel.FileInfo, error) {
	var reply channel.Reply
	if err := channel.DecodeJSON(channel.FrameReply, payload, &reply); err != nil {
		return channel.FileInfo{}, err
	}
	if !reply.OK {
		return channel.FileInfo{}, fault.New(reply.Code.Category(), "%.300s", reply.Error)
	}
	var info channel.FileInfo
	if len(reply.Body) > 0 {
		if err := json.Unmarshal(reply.Body, &info); err != nil {
			return channel.FileInfo{}, fault.Wrap(fault.ErrUnavailable, err, "the sandbox's answer can't be read")
		}
	}
	return info, nil
}

// writeFile stores the request's body under a path. A body that breaks off leaves
// the file as it was.
func (s fileRoutes) writeFile(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f, err := fileCall(q, "mode")
	if err != nil {
		return err
	}
	if text := q.Get("mode"); text != "" {
		mode, err := strconv.ParseUint(text, 8, 12)
		if err != nil {
			return fault.Invalid("mode=%.20q is no file mode such as 644 or 0755", text)
		}
		f.Mode = uint32(mode)
	}
	f.Op = channel.FileWrite
	conn, err := s.open(r, f)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the operation is over, or the client is gone
	info, err := store(conn, r.Body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, viewFile(info))
}

// store sends a body and waits for the answer. The body is not read any more when it
// returns: it belongs to the request's handler.
func store(conn *channel.Conn, body io.Reader) (channel.FileInfo, error) {
	sent := make(chan error, 1)
	errand.Go(func() { sent <- errand.Try(func() error { return send(conn, body) }) })
	info, err := written(conn)
	if err == nil {
		if failure := <-sent; failure != nil {
			return info, fault.New(fault.ErrUnavailable, "the sandbox's agent took only a part of the file")
		}
		return info, nil
	}
	if slow, ok := body.(*paced); ok {
		slow.cut()
	}
	conn.Close() //nolint:errcheck // it ends the sending, too
	if failure := <-sent; errors.Is(failure, errBody) {
		return info, failure // the body's own failure tells more
	}
	return info, err
}

// errBody: the request's body broke off.
var errBody = fault.Invalid("the request's body broke off; the file was left as it was")

// send passes a body on and ends it, unless it broke off: then the connection is
// closed, so that the other side does not take it for whole.
func send(conn *channel.Conn, body io.Reader) error {
	buf := make([]byte, channel.MaxPayload)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if err := conn.WriteFrame(channel.FrameStdin, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return conn.WriteFrame(channel.FrameStdin, nil)
		case errors.Is(err, errCut):
			return err
		case err != nil:
			conn.Close() //nolint:errcheck // it has to end, however
			return errBody
		}
	}
}

// written waits for the last reply of a write, which may come before all of the
// body is sent: the disk is full, say.
func written(conn *channel.Conn) (channel.FileInfo, error) {
	got, payload, err := conn.ReadFrame()
	if err != nil {
		return channel.FileInfo{}, fault.Wrap(fault.ErrUnavailable, err, "the sandbox's answer broke off")
	}
	if got != channel.FrameReply {
		return channel.FileInfo{}, fault.New(fault.ErrUnavailable, "the sandbox's answer is not one to this request")
	}
	return lastReply(payload)
}

func viewFile(f channel.FileInfo) api.FileInfo {
	return api.FileInfo{
		Path: f.Path, Kind: string(f.Kind), Target: f.Target, Size: f.Size, Mode: f.Mode,
		Owner: f.Owner, Group: f.Group, Modified: f.Modified, Metadata: f.Metadata,
	}
}
