package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// rendered is a page for clients, or what they get instead. It is never changed.
type rendered struct {
	contentType string
	packed      []byte  // gzip
	size        int64   // unpacked
	tag         string  // the ETag without quotes and encoding
	kin         kinship // of the project
	notice      *withheld
	// In place of a document:
	refused *withheld // a decision
	missing error     // there is no such release
}

// rendering gives a page under the door's verdicts, rendered once however many
// want it.
func (g *Gateway) rendering(ctx context.Context, q *query, p *page, a door.IndexAnswer) (*rendered, error) {
	form := q.source.protocol.Form(strings.Join(q.r.Header.Values("Accept"), ","))
	key := strings.Join([]string{q.source.index, p.digest, a.Epoch, string(form), q.route.Release}, " ")
	if out, ok := g.rendered.get(key); ok {
		return out, nil
	}
	s, release := q.source, q.route.Release
	return flight(ctx, g, "render "+key, func(ctx context.Context) (*rendered, error) {
		if out, ok := g.rendered.get(key); ok { // another flight was faster
			return out, nil
		}
		free, err := slot(ctx, g.heavy, max(p.size, p.stored.Size()))
		if err != nil {
			return nil, err
		}
		defer free()
		out, err := g.render(s, p, a, form, release)
		if err != nil || out.missing != nil {
			return out, err
		}
		sum := sha256.Sum256([]byte(key))
		out.tag = hex.EncodeToString(sum[:16])
		g.rendered.put(key, out, int64(len(out.packed)+len(key)+500))
		return out, nil
	})
}

func (g *Gateway) render(s *source, p *page, a door.IndexAnswer, form ecosystem.Form, release string) (*rendered, error) {
	verdicts, kin := verdictsOf(a)
	rows, err := p.openRows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := &rendered{contentType: s.protocol.ContentType(form), kin: kin}
	err = g.pack(out, func(w io.Writer) error {
		return s.protocol.Render(w, p.index, rows, ecosystem.View{Form: form, Verdicts: verdicts, Release: release})
	})
	switch {
	case err == nil && release == "":
		out.notice = noticeOf(s.ecosystem(), p.index, a)
	case errors.Is(err, fault.ErrForbidden), errors.Is(err, fault.ErrNotFound):
		out.packed = nil
		out.refused, out.missing = instead(s.ecosystem(), p.index, a, release, err)
	case err != nil:
		return nil, err
	}
	return out, nil
}

// verdictsOf spreads the door's answer over the files, as protocols want it.
func verdictsOf(a door.IndexAnswer) (verdicts []ecosystem.Verdict, kin kinship) {
	verdicts = make([]ecosystem.Verdict, len(a.OfFile))
	for i, v := range a.OfFile {
		d := a.Verdicts[v]
		verdicts[i] = ecosystem.Verdict{Allowed: d.Shown(), Reason: d.Reason}
		kin = max(kin, kinOf(d))
	}
	return verdicts, kin
}

// pack has a document written straight into gzip.
func (g *Gateway) pack(out *rendered, write func(io.Writer) error) error {
	var packed bytes.Buffer
	z, ok := g.zips.Get().(*gzip.Writer)
	if !ok {
		var err error
		if z, err = gzip.NewWriterLevel(&packed, gzip.BestSpeed); err != nil {
			return err
		}
	}
	z.Reset(&packed)
	size := &sized{to: z}
	if err := errors.Join(write(size), z.Close()); err != nil {
		return err
	}
	g.zips.Put(z)
	out.packed, out.size = bytes.Clone(packed.Bytes()), size.n
	return nil
}

// sized counts what is written.
type sized struct {
	to io.Writer
	n  int64
}

// Write implements io.Writer.
func (s *sized) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.n += int64(n)
	return n, err
}

// sendPage lets clients keep the page and ask each time whether it still holds;
// one with a notice is not kept, or the notice would be shown without it. id is
// of the record of what is withheld.
func (q *query) sendPage(out *rendered, id string) {
	h := q.w.Header()
	h.Set("Cache-Control", "no-cache")
	q.setNotice(out, id)
	h.Set("Vary", "Accept, Accept-Encoding")
	packed := takesGzip(q.r.Header.Values("Accept-Encoding"))
	etag := `"` + out.tag + `"`
	if packed {
		etag = `"` + out.tag + `-gzip"`
	}
	h.Set("ETag", etag)
	for tag := range strings.SplitSeq(strings.Join(q.r.Header.Values("If-None-Match"), ","), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == etag {
			q.w.WriteHeader(http.StatusNotModified)
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
	q.w.WriteHeader(http.StatusOK)
	switch {
	case q.r.Method == http.MethodHead:
	case packed:
		_, _ = q.w.Write(out.packed) // a guest that went away asks again
	default:
		if z, err := gzip.NewReader(bytes.NewReader(out.packed)); err == nil { // our own: it is whole
			_, _ = io.Copy(q.w, z) //nolint:gosec // as large as it was when it was packed; a guest that went away asks again
		}
	}
}

func (q *query) setNotice(out *rendered, id string) {
	n, ok := q.source.protocol.(ecosystem.Noticer)
	if !ok || out.notice == nil {
		return
	}
	fields := n.Notice(ecosystem.Refusal{
		Route: q.route.Kind, Cause: ecosystem.ByPolicy, What: out.notice.ref.String(), Reason: out.notice.decision.Reason,
		Rule: out.notice.decision.Rule, Suggest: out.notice.decision.Suggest, RequestID: id,
	})
	for name, value := range fields {
		q.w.Header().Set(name, ecosystem.Line(value))
	}
	if len(fields) > 0 {
		q.w.Header().Set("Cache-Control", "no-store")
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
