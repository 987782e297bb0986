package pages

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
)

// Rendered is a page for clients, or what they get instead. It is never changed.
type Rendered struct {
	contentType string
	packed      []byte // gzip
	size        int64  // unpacked
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

// Send answers with the document, packed if the client takes that, or tells that
// the client has it.
func (out *Rendered) Send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Vary", "Accept, Accept-Encoding")
	packed := takesGzip(r.Header.Values("Accept-Encoding"))
	etag := `"` + out.tag + `"`
	if packed {
		etag = `"` + out.tag + `-gzip"`
	}
	h.Set("ETag", etag)
	for tag := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", out.contentType)
	size := out.size
	if packed {
		h.Set("Content-Encoding", "gzip")
		size = int64(len(out.packed))
	}
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	switch {
	case r.Method == http.MethodHead:
	case packed:
		_, _ = w.Write(out.packed) // a guest that went away asks again
	default:
		if z, err := gzip.NewReader(bytes.NewReader(out.packed)); err == nil { // our own: it is whole
			_, _ = io.Copy(w, z) //nolint:gosec // as large as it was when it was packed; a guest that went away asks again
		}
	}
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
