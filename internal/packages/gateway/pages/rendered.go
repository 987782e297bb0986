package pages

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Rendered is a page for clients, or what they get instead. It is never changed.
type Rendered struct {
	contentType string
	packed      []byte // gzip
	size        int64  // unpacked
	what        renderKey
	tag         string // the ETag without quotes and encoding

	Notice *Withheld // to be shown with the document; nil: nothing
	// In place of a document:
	Refused *Withheld // a decision
	Missing error     // there is no such release
}

// renderKey covers what a rendered page depends on.
type renderKey struct {
	index, digest, epoch string
	form                 ecosystem.Form
	release              string
}

// String has one text for each key: none of its parts but the last has a space.
func (k renderKey) String() string {
	return strings.Join([]string{k.index, k.digest, k.epoch, string(k.form), k.release}, " ")
}

// errSpoilt means that what was kept of a rendered page can't be unpacked.
var errSpoilt = fault.New(fault.ErrUnavailable, "what was kept of the page can't be unpacked")

// Document is a rendered page as one client takes it.
type Document struct {
	*Rendered
	gzipped  bool
	unpacked *bufio.Reader // reads from source; nil: it is not sent unpacked
	source   *fallible
	forget   func()
}

// sureBytes of a document are unpacked before any of it is sent.
const sureBytes = 64 << 10

// openRendered gives what is rendered as a client takes it: packed, or unpacked. errSpoilt: it
// can't be unpacked, and is kept no more.
func (ps *Pages) openRendered(out *Rendered, r *http.Request) (*Document, error) {
	d := &Document{Rendered: out, gzipped: takesGzip(r.Header.Values("Accept-Encoding")), forget: func() { ps.rendered.Remove(out.what) }}
	if d.gzipped || r.Method == http.MethodHead || out.Refused != nil || out.Missing != nil {
		return d, nil //nolint:nilerr // what is missing is the answer
	}
	z, err := gzip.NewReader(bytes.NewReader(out.packed))
	if err == nil {
		d.source = &fallible{from: z}
		d.unpacked = bufio.NewReaderSize(d.source, sureBytes)
		_, _ = d.unpacked.Peek(sureBytes) // source knows
		err = d.source.failure
	}
	if err != nil {
		d.forget()
		return nil, errSpoilt
	}
	return d, nil
}

// fallible remembers why reading failed.
type fallible struct {
	from    io.Reader
	failure error
}

// Read implements io.Reader.
func (f *fallible) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.failure = err
	}
	return n, err
}

// Send answers with the document, or tells that the client has it. Where the rest of it
// can't be unpacked the connection breaks, so that no client takes it for whole.
func (d *Document) Send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Vary", "Accept, Accept-Encoding")
	etag := `"` + d.tag + `"`
	if d.gzipped {
		etag = `"` + d.tag + `-gzip"`
	}
	h.Set("ETag", etag)
	for tag := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", d.contentType)
	size := d.size
	if d.gzipped {
		h.Set("Content-Encoding", "gzip")
		size = int64(len(d.packed))
	}
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	switch {
	case r.Method == http.MethodHead:
	case d.gzipped:
		_, _ = w.Write(d.packed) //nolint:gosec // a protocol's document; a guest that went away asks again
	default:
		d.unpack(w)
	}
}

// unpack keeps the end back until all is known to be whole.
func (d *Document) unpack(w io.Writer) {
	if _, err := io.CopyN(w, d.unpacked, max(d.size-sureBytes, 0)); err == nil {
		if end, err := io.ReadAll(d.unpacked); err == nil {
			_, _ = w.Write(end) // a guest that went away asks again
		}
	}
	if d.source.failure != nil {
		d.forget()
		panic(http.ErrAbortHandler) // the status is out
	}
}

// Kept is how many bytes are in memory until a client has read the document.
func (d *Document) Kept() int {
	if d.unpacked == nil {
		return len(d.packed)
	}
	return len(d.packed) + 2*sureBytes // with the window of what unpacks it
}

// takesGzip reads Accept-Encoding: whether gzip is named, or everything is, and
// not with a weight of zero.
func takesGzip(values []string) bool {
	takes := false
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		weight = strings.ReplaceAll(strings.ToLower(weight), " ", "")
		none := strings.HasPrefix(weight, "q=0") && strings.Trim(weight[len("q=0"):], ".0") == ""
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return !none
		case "*":
			takes = !none
		}
	}
	return takes
}
