package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// rendered is a page for clients.
type rendered struct {
	contentType string
	body        []byte
	etag        string
	some        bool // something of it is allowed
}

// serveIndex answers with a project's page, judged for the guest's run.
func (g *Gateway) serveIndex(q *query) {
	ref := pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project}
	settle, err := g.guests.ask(q.sandbox, ref.String(), q.r.Context().Done())
	if err != nil {
		g.refusePage(q, ref, err)
		return
	}
	friend := false
	defer func() { settle(friend) }()
	p, err := g.page(q.r.Context(), q.source, q.route.Project)
	if err != nil {
		g.refusePage(q, ref, err)
		return
	}
	if len(p.index.Files) == 0 && len(p.index.LeftOut) > 0 {
		g.refusePage(q, ref, fault.Invalid("none of its %d files can be served: of the first, %s", len(p.index.LeftOut), p.index.LeftOut[0].Reason))
		return
	}
	out, err := g.judged(q.r.Context(), q, p)
	if err != nil {
		g.log.Error("an index page could not be judged", "sandbox", q.sandbox, "project", q.route.Project, "error", err)
		q.refuse(ecosystem.Refusal{Cause: ecosystem.Unreachable, What: ref.String(), Reason: "the request could not be decided and recorded"})
		return
	}
	friend = out.some
	q.sendPage(out)
}

// refusePage answers for a page that there is not, and records why.
func (g *Gateway) refusePage(q *query, ref pkgref.Ref, err error) {
	if q.r.Context().Err() != nil {
		return // nobody is there to be answered, and nothing was refused
	}
	g.log.Warn("an index page is refused", "sandbox", q.sandbox, "project", q.route.Project, "error", err)
	r := ecosystem.Refusal{Cause: causeOf(err), What: ref.String(), Reason: sentence(err)}
	r.RequestID = g.failed(q, admission.Failure{
		Package: ref, SourceURL: q.source.protocol.IndexAsk(q.source.index, ref.Name).URL, ResolvedBy: policy.ByIntegrity, Reason: r.Reason,
	})
	q.refuse(r)
}

// judged asks the door about a page, by its digest first, and renders it
// unless it was rendered under the same verdicts before.
func (g *Gateway) judged(ctx context.Context, q *query, p *page) (*rendered, error) {
	ask := admission.IndexAsk{
		Sandbox: q.sandbox, Package: pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project},
		SourceURL: p.url, IndexDigest: p.digest,
	}
	a, err := g.door.Index(ctx, ask)
	if err == nil && a.NeedFiles {
		ask.Files = p.files
		a, err = g.door.Index(ctx, ask)
	}
	if err != nil {
		return nil, err
	}
	if a.NeedFiles || a.Epoch == "" {
		return nil, errors.New("the door gave no verdicts")
	}
	form := q.source.protocol.Form(strings.Join(q.r.Header.Values("Accept"), ","))
	key := strings.Join([]string{q.source.index, p.digest, a.Epoch, string(form)}, " ")
	if out, ok := g.rendered.get(key); ok {
		return out, nil
	}
	verdicts, some, err := verdictsOf(a, len(p.index.Files))
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := q.source.protocol.Render(&body, p.index, p.rows, ecosystem.View{Form: form, Verdicts: verdicts, Release: q.route.Release}); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(key))
	out := &rendered{contentType: q.source.protocol.ContentType(form), body: body.Bytes(), etag: `"` + hex.EncodeToString(sum[:16]) + `"`, some: some}
	g.rendered.put(key, out, int64(body.Len()+len(key)+200))
	return out, nil
}

// verdictsOf spreads the door's answer over the files.
func verdictsOf(a admission.IndexAnswer, files int) (verdicts []ecosystem.Verdict, some bool, err error) {
	if len(a.OfFile) != files {
		return nil, false, fmt.Errorf("the door judged %d of %d files", len(a.OfFile), files)
	}
	verdicts = make([]ecosystem.Verdict, files)
	for i, v := range a.OfFile {
		if v < 0 || v >= len(a.Verdicts) {
			return nil, false, errors.New("the door gave a file a verdict that there is not")
		}
		d := a.Verdicts[v]
		verdicts[i] = ecosystem.Verdict{Allowed: d.Allowed(), Reason: d.Reason}
		some = some || d.Allowed()
	}
	return verdicts, some, nil
}

// sendPage lets clients keep the page and ask each time whether it still holds.
func (q *query) sendPage(out *rendered) {
	h := q.w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept")
	h.Set("ETag", out.etag)
	for tag := range strings.SplitSeq(q.r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == out.etag {
			q.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", out.contentType)
	h.Set("Content-Length", strconv.Itoa(len(out.body)))
	q.w.WriteHeader(http.StatusOK)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(out.body) // a guest that went away asks again
	}
}
