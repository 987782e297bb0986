package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
)

// Render gives a judged page, or a release of it, as the client takes it that asks with r.
// It is rendered once however many want it, and anew if what was kept can't be unpacked.
func (ps *Pages) Render(ctx context.Context, j Judged, r *http.Request, release string) (*Document, error) {
	form := j.source.Protocol.Form(strings.Join(r.Header.Values("Accept"), ","))
	out, err := ps.renderOnce(ctx, j, form, release)
	if err != nil {
		return nil, err
	}
	doc, err := ps.openRendered(out, r)
	if !errors.Is(err, errSpoilt) {
		return doc, err
	}
	if out, err = ps.renderOnce(ctx, j, form, release); err != nil {
		return nil, err
	}
	return ps.openRendered(out, r)
}

func (ps *Pages) renderOnce(ctx context.Context, j Judged, form ecosystem.Form, release string) (*Rendered, error) {
	what := renderKey{j.source.Index, j.Digest, j.answer.Epoch, form, release}
	if out, ok := ps.rendered.Get(what); ok {
		return out, nil
	}
	return coalesce.Once(ctx, ps.cfg.Flights, what, func(ctx context.Context) (*Rendered, error) {
		if out, ok := ps.rendered.Get(what); ok { // another flight was faster
			return out, nil
		}
		free, err := takeSlot(ctx, ps.heavy, max(j.size, j.stored.Size()))
		if err != nil {
			return nil, err
		}
		defer free()
		out, err := ps.render(j, form, release)
		if err != nil || out.Missing != nil {
			return out, err
		}
		text := what.String()
		out.what, out.tag = what, ps.etagOf(text)
		ps.rendered.Put(what, out, int64(len(out.packed)+len(text)+500))
		return out, nil
	})
}

// etagOf is an ETag. The parts of a page have the times at which its files were first seen
// here, by whichever run: who guesses them must not see from the tag that they are right.
func (ps *Pages) etagOf(text string) string {
	mac := hmac.New(sha256.New, ps.tagKey)
	_, _ = mac.Write([]byte(text)) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func (ps *Pages) render(j Judged, form ecosystem.Form, release string) (*Rendered, error) {
	rows, err := j.openRows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	protocol := j.source.Protocol
	out := &Rendered{contentType: protocol.ContentType(form)}
	err = ps.packDocument(out, func(w io.Writer) error {
		return protocol.Render(w, j.Index, rows, ecosystem.View{Form: form, Verdicts: j.verdicts(), Release: release})
	})
	switch {
	case err == nil && release == "":
		out.Notice = noticeOf(j)
	case errors.Is(err, fault.ErrForbidden), errors.Is(err, fault.ErrNotFound):
		out.packed = nil
		out.Refused, out.Missing = instead(j, release, err)
	case err != nil:
		return nil, err
	}
	return out, nil
}

// verdicts spreads the door's answer over the files, as protocols want it.
func (j Judged) verdicts() []ecosystem.Verdict {
	verdicts := make([]ecosystem.Verdict, len(j.answer.OfFile))
	for i, v := range j.answer.OfFile {
		d := &j.answer.Verdicts[v]
		verdicts[i] = ecosystem.Verdict{Allowed: d.Shown(), Outlined: d.Outlined(), Reason: d.Reason}
	}
	return verdicts
}

// packDocument has a document written straight into gzip.
func (ps *Pages) packDocument(out *Rendered, write func(io.Writer) error) error {
	var packed bytes.Buffer
	z, ok := ps.zips.Get().(*gzip.Writer)
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
	ps.zips.Put(z)
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
