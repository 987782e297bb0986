package e2b

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

const (
	maxUploads    = 1_000            // files of one request
	uploadTimeout = 60 * time.Second // without a byte from the client
	maxUnbounded  = 64 << 30         // bytes of an upload into a sandbox without a disk limit
	// maxPartHead is what may be read of a form between the content of two files, and partHeadTime in
	// what time: a header is in memory until it is whole, each byte of it at the cost of the shortest
	// fields.
	maxPartHead  = 32 << 10
	partHeadTime = 60 * time.Second
)

// uploaded tells of a file that was written.
type uploaded struct {
	Name     string            `json:"name"`
	Type     string            `json:"type"`
	Path     string            `json:"path"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// upload writes files: the parts of a form, each with its path as file name, or the
// body itself. Each file is there whole or not at all; those of a form before one
// that fails stay.
func (d *Data) upload(w http.ResponseWriter, c *call) error {
	user, err := c.queryUser()
	if err != nil {
		return err
	}
	metadata, err := metadataOf(c.Header)
	if err != nil {
		return err
	}
	u := &uploading{d: d, c: c, user: user, metadata: metadata, left: d.uploadLimit(c)}
	body, err := u.openBody(w)
	if err != nil {
		return err
	}
	defer http.NewResponseController(w).SetReadDeadline(time.Time{}) //nolint:errcheck // a writer of tests has no connection
	contentType, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil {
		return refuseWith(codeInvalid, "the Content-Type of an upload is multipart/form-data or application/octet-stream")
	}
	name := c.URL.Query().Get("path")
	switch contentType {
	case "application/octet-stream":
		err = u.writeOne(name, body)
	case "multipart/form-data":
		err = u.writeForm(body, params["boundary"], name)
	default:
		return refuseWith(codeInvalid, "an upload is multipart/form-data or application/octet-stream, and not %.60q", contentType)
	}
	if err != nil {
		return err
	}
	return writeAnswer(c.Context(), w, http.StatusOK, u.written)
}

// uploadLimit returns how much may be written by one request: no more than the disk has.
func (d *Data) uploadLimit(c *call) int64 {
	if limit := c.box.Info().Limits.DiskBytes; limit > 0 {
		return limit
	}
	return maxUnbounded
}

// uploading is one request to write files.
type uploading struct {
	d        *Data
	c        *call
	user     string
	metadata map[string]string
	left     int64 // bytes that may still come, unpacked
	raw      *uploadBody
	written  []uploaded
	last     channel.FileInfo // of written
}

// openBody opens the request's body, unpacked, which may stall for a while only.
func (u *uploading) openBody(w http.ResponseWriter) (io.Reader, error) {
	raw := &uploadBody{r: u.c.Body, control: http.NewResponseController(w)}
	u.raw = raw
	switch encoding := strings.ToLower(u.c.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return raw, nil
	case "gzip":
		unzipped, err := gzip.NewReader(raw)
		if err != nil {
			return nil, refuseWith(codeInvalid, "the body is not gzip: %v", err)
		}
		return unzipped, nil
	default:
		return nil, refuseWith(codeInvalid, "the compression %.40q is not supported: gzip is", encoding)
	}
}

// uploadBody moves the read deadline with every read, but for until.
type uploadBody struct {
	r       io.Reader
	control *http.ResponseController
	until   time.Time // in which something has to be whole; zero: nothing has
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	at := time.Now().Add(uploadTimeout)
	if !b.until.IsZero() && b.until.Before(at) {
		at = b.until
	}
	_ = b.control.SetReadDeadline(at) // a writer of tests has no connection
	return b.r.Read(p)
}

// partHeads is the body of a form whose parts' headers are bounded, and take room: multipart reads each
// whole before anybody can look at it.
type partHeads struct {
	ctx  context.Context //nolint:containedctx // of the one request whose body it is
	body io.Reader
	raw  *uploadBody

	inside bool // a header, or what stands between two parts
	read   int  // of it
	kept   int  // room for the header of the part that is being read
	err    error
}

var errPartHead = refuseWith(codeInvalid, "the header of a form's part is longer than %d KiB", maxPartHead>>10)

// Read implements io.Reader.
func (h *partHeads) Read(p []byte) (int, error) {
	if !h.inside {
		return h.body.Read(p)
	}
	if h.read >= maxPartHead {
		h.err = errPartHead
		return 0, h.err
	}
	n, err := h.body.Read(p[:min(len(p), maxPartHead-h.read)])
	h.read += n
	if full := backend.Take(h.ctx, n*httphead.PerByte); full != nil {
		h.err = full
		return 0, full
	}
	return n, err
}

// nextPart is the next part of a form. The part of its header that was read is counted until it is whole, and what it
// became until the part after it: a part is there for as long as its content takes.
func (h *partHeads) nextPart(parts *multipart.Reader) (*multipart.Part, error) {
	h.inside, h.read, h.raw.until = true, 0, time.Now().Add(partHeadTime)
	defer func() { h.inside, h.raw.until = false, time.Time{} }()
	part, err := parts.NextRawPart()
	if h.err == nil {
		backend.Give(h.ctx, h.kept+h.read*httphead.PerByte)
		h.kept = 0
	}
	switch {
	case err == nil:
		// The fields, and beside them the parameters of the one that is looked into.
		kept := backend.SizeOf(part.Header) + httphead.PerByte*len(part.Header.Get("Content-Disposition"))
		if err := backend.Take(h.ctx, kept); err != nil {
			return nil, err
		}
		h.kept = kept
		return part, nil
	case errors.Is(err, io.EOF):
		return nil, err
	case h.err != nil:
		return nil, h.err
	}
	return nil, refuseWith(codeInvalid, "the form is not whole: %v", err)
}

// writeForm writes the parts named file. With a path in the query there is one, and that
// is its place.
func (u *uploading) writeForm(body io.Reader, boundary, name string) error {
	heads := &partHeads{ctx: u.c.Context(), body: body, raw: u.raw}
	parts := multipart.NewReader(heads, boundary)
	for {
		part, err := heads.nextPart(parts)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if part.FormName() != "file" {
			// It is read, or it would be taken for a header, and counts like what is kept: unpacking it is as much work.
			if _, err := io.Copy(io.Discard, &boundedUpload{u, part}); err != nil {
				return err
			}
			continue
		}
		to := name
		if to == "" {
			to = fileName(part)
		}
		if len(u.written) >= maxUploads || name != "" && len(u.written) > 0 {
			return refuseWith(codeInvalid, "the form has more files than it may: one with a path in the query, up to %d without", maxUploads)
		}
		if err := u.writeOne(to, part); err != nil {
			return err
		}
	}
	if len(u.written) == 0 {
		return refuseWith(codeInvalid, "the form has no part named file")
	}
	return nil
}

// fileName is the whole file name of a part, directories included.
func fileName(part *multipart.Part) string {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

// writeOne writes one file.
func (u *uploading) writeOne(name string, content io.Reader) error {
	if name == "" {
		return refuseWith(codeInvalid, "name the file: path= in the query, or the part's file name")
	}
	info, err := u.writeContent(name, content)
	if err != nil {
		return err
	}
	u.last = info
	told := uploaded{Name: path.Base(info.Path), Type: "file", Path: info.Path, Metadata: clientMetadata(info.Metadata)}
	if err := backend.Take(u.c.Context(), backend.SizeOf(told)); err != nil { // until the form has ended
		return err
	}
	u.written = append(u.written, told)
	return nil
}

// writeContent sends a file's content to the sandbox.
func (u *uploading) writeContent(name string, content io.Reader) (channel.FileInfo, error) {
	ctx := u.c.Context()
	file := channel.File{Op: channel.FileWrite, Path: name, User: u.user, Metadata: u.metadata}
	conn, _, err := u.d.cfg.Sandboxes.OpenFile(ctx, u.c.id, file)
	if given, ok := givenTo(file, err); ok {
		var again error
		if conn, _, again = u.d.cfg.Sandboxes.OpenFile(ctx, u.c.id, given); again == nil {
			err = nil
		}
	}
	if err != nil {
		return channel.FileInfo{}, err
	}
	defer conn.Close() //nolint:errcheck // the guest has answered, or is given up
	defer cutOff(ctx, conn)()
	info, err := channel.WriteFile(conn, &boundedUpload{u, content}, nil)
	return info, streamError(ctx, err)
}

// givenTo is how what the default user may not write, because only root may write there,
// is written all the same, as clients of this wire expect of an absolute path: by root,
// for that user. They may write as root, too, so it is no right that they lack; what
// runs inside has none of it.
func givenTo(f channel.File, refused error) (channel.File, bool) {
	if !errors.Is(refused, fault.ErrForbidden) || f.User != "" || !path.IsAbs(f.Path) {
		return f, false
	}
	f.User, f.Give = rootUser, true
	return f, true
}

// boundedUpload is an upload's content, of which no more is read than the request may write.
type boundedUpload struct {
	u       *uploading
	content io.Reader
}

// Read implements io.Reader. Its errors are for the client.
func (b *boundedUpload) Read(p []byte) (int, error) {
	n, err := b.content.Read(p)
	if b.u.left -= int64(n); b.u.left < 0 {
		return 0, channel.NewFileError(channel.CodeNoSpace, "the upload is larger than the sandbox's disk")
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if _, ours := errors.AsType[*fault.Fault](err); ours { // content that comes from a sandbox
		return n, err
	}
	return n, refuseWith(codeInvalid, "the upload did not come whole: %v", err)
}

// The headers and attributes of a file's metadata.
const (
	metadataHeader = "X-Metadata-"
	metadataPrefix = "e2b." // of the attributes, below "user."
	maxMetadata    = 1 << 10
)

// metadataOf reads X-Metadata-NAME headers: they become the file's attributes
// user.e2b.name.
func metadataOf(h http.Header) (map[string]string, error) {
	found := map[string]string{}
	for key, values := range h {
		name, ok := strings.CutPrefix(http.CanonicalHeaderKey(key), metadataHeader)
		if !ok {
			continue
		}
		if name == "" || len(name) > 200 || len(values) != 1 || len(values[0]) > maxMetadata {
			return nil, refuseWith(codeInvalid, "the header %.60q is no metadata: once, with a name of up to 200 and a value of up to %d bytes", key, maxMetadata)
		}
		found[metadataPrefix+strings.ToLower(name)] = values[0]
	}
	if len(found) > channel.MaxMetadata {
		return nil, refuseWith(codeInvalid, "%d headers %s*; at most %d", len(found), metadataHeader, channel.MaxMetadata)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found, nil
}

// clientMetadata is what clients see of a file's attributes: those of theirs.
func clientMetadata(attributes map[string]string) map[string]string {
	found := map[string]string{}
	for name, value := range attributes {
		if short, ok := strings.CutPrefix(name, metadataPrefix); ok {
			found[short] = value
		}
	}
	return found
}
