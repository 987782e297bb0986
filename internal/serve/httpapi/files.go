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
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Bounds of what names a file.
const (
	maxPath  = 4095
	maxDepth = 100
)

// fileCall is the file that a query names; which operation is for the caller to
// say.
func fileCall(q url.Values, more ...string) (channel.File, error) {
	if err := checkQueryKeys(q, append([]string{"path", "user"}, more...)...); err != nil {
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

// fileRoutes are about files in sandboxes.
type fileRoutes struct{ *desk }

// doFile does an operation that is one answer.
func (s fileRoutes) doFile(r *http.Request, f channel.File) (channel.FileInfo, error) {
	sb, err := s.ownAwake(r)
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
	info, err := s.doFile(r, f)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewFile(info))
}

func (s fileRoutes) removeFile(w http.ResponseWriter, r *http.Request) error {
	f, err := fileCall(r.URL.Query())
	if err != nil {
		return err
	}
	f.Op = channel.FileRemove
	if _, err := s.doFile(r, f); err != nil {
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
	info, err := s.doFile(r, channel.File{Op: channel.FileMkdir, Path: body.Path, User: body.User, Mode: body.Mode})
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusCreated, viewFile(info))
}

func (s fileRoutes) moveFile(w http.ResponseWriter, r *http.Request) error {
	var body api.MoveFile
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if err := errors.Join(checkPath(body.Path), checkPath(body.To)); err != nil {
		return err
	}
	info, err := s.doFile(r, channel.File{Op: channel.FileMove, Path: body.Path, To: body.To, User: body.User})
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewFile(info))
}

// openFile begins an operation that is a stream.
func (s fileRoutes) openFile(r *http.Request, f channel.File) (*channel.Conn, channel.FileInfo, error) {
	sb, err := s.ownAwake(r)
	if err != nil {
		return nil, channel.FileInfo{}, err
	}
	conn, info, err := s.cfg.Sandboxes.OpenFile(r.Context(), sb.Info().ID, f)
	if err != nil {
		return nil, info, err
	}
	// A guest that says nothing more must not outlast its client here.
	safego.When(r.Context(), func() { _ = conn.Close() })
	return conn, info, nil
}

// listFiles streams what is in a directory as JSON lines, in the order of paths.
func (s fileRoutes) listFiles(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f, err := fileCall(q, "depth")
	if err != nil {
		return err
	}
	depth, err := parseNumber(q.Get("depth"))
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return fault.Invalid("depth is %d; it is at most %d", depth, maxDepth)
	}
	f.Op, f.Depth = channel.FileList, max(int(depth), 1)
	conn, _, err := s.openFile(r, f)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the operation is over, or the client is gone
	begun := false
	out := json.NewEncoder(&httphead.Answer{ResponseWriter: w, Within: s.cfg.Untaken})
	err = channel.ReadList(conn, func(part []channel.FileInfo) error {
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
			begun = true
		}
		for _, entry := range part {
			if err := out.Encode(viewFile(entry)); err != nil {
				return errAnswered
			}
		}
		return nil
	})
	if err != nil && begun && !errors.Is(err, errAnswered) {
		return s.cutAnswer(r, err)
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
	if r.Method == http.MethodHead {
		if told, err := s.tellHead(w, r, f); told || err != nil {
			return err
		}
	}
	conn, info, err := s.openFile(r, f)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the operation is over, or the client is gone
	body := &octets{w: &httphead.Answer{ResponseWriter: w, Within: s.cfg.Untaken}, size: info.Size}
	_, err = channel.NewFileReader(conn, info.Size).WriteTo(body)
	switch {
	case err == nil:
		body.beginBody()
	case body.begun && !errors.Is(err, errAnswered):
		return s.cutAnswer(r, err)
	}
	return err
}

// tellHead answers who asks for a file's headers alone; told is false if the file has to be
// opened to say why there is none.
func (s fileRoutes) tellHead(w http.ResponseWriter, r *http.Request, f channel.File) (told bool, err error) {
	sb, err := s.ownAwake(r)
	if err != nil {
		return false, err
	}
	info, told := backend.HeadOf(r.Context(), s.cfg.Sandboxes, sb.Info().ID, f)
	if told {
		(&octets{w: w, size: info.Size}).beginBody()
	}
	return told, nil
}

// octets is an answer of bytes, whose headers go out with the first of them: until then
// an error can be told.
type octets struct {
	w     http.ResponseWriter
	size  int64 // of the file, as the guest says
	begun bool
}

func (o *octets) beginBody() {
	if o.begun {
		return
	}
	o.begun = true
	o.w.Header().Set("Content-Type", "application/octet-stream")
	o.w.Header().Set(api.FileSizeHeader, strconv.FormatInt(o.size, 10))
	o.w.Header().Set("X-Content-Type-Options", "nosniff") // the bytes are a guest's
	o.w.Header().Set("Content-Disposition", "attachment")
	o.w.WriteHeader(http.StatusOK)
}

// Write fails with errAnswered when the client is gone.
func (o *octets) Write(p []byte) (int, error) {
	o.beginBody()
	n, err := o.w.Write(p)
	if err != nil {
		return n, errAnswered
	}
	return n, nil
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
	conn, _, err := s.openFile(r, f)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the operation is over, or the client is gone
	info, err := storeBody(conn, r.Body)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, viewFile(info))
}

// storeBody sends a body and waits for the answer. The body is not read any more when it
// returns: it belongs to the request's handler.
func storeBody(conn *channel.Conn, body io.Reader) (channel.FileInfo, error) {
	var cut func()
	if slow, ok := body.(*paced); ok {
		cut = slow.cutBody
	}
	return channel.WriteFile(conn, whole{body}, cut)
}

// errBody: the request's body broke off.
var errBody = fault.Invalid("the request's body broke off; the file was left as it was")

// whole is a body that says so when it breaks off.
type whole struct{ body io.Reader }

// Read implements io.Reader.
func (r whole) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBody
	}
	return n, err
}

func viewFile(f channel.FileInfo) api.FileInfo {
	return api.FileInfo{
		Path: f.Path, Kind: string(f.Kind), Target: f.Target, Size: f.Size, Mode: f.Mode,
		Owner: f.Owner, Group: f.Group, Modified: f.Modified, Metadata: f.Metadata,
	}
}
