package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// fileCandidate is a source that may have the file that was asked for.
type fileCandidate struct {
	source *source
	route  ecosystem.Route
}

// asked is a file that an index lists, asked for by a guest.
type asked struct {
	*query
	file ecosystem.File
	ref  pkgref.Ref // with version
	url  string     // of the file
}

// serveFile answers with a file or its sidecar. The client need not have asked
// for the index: it is read here, and alone says what the file is.
func (g *Gateway) serveFile(q *query, candidates []fileCandidate) {
	var failed error
	for _, c := range candidates {
		q.source, q.route = c.source, c.route
		file, err := g.listed(q)
		if err == nil {
			a := &asked{query: q, file: file, ref: pkgref.Ref{Ecosystem: c.source.ecosystem(), Name: c.route.Project, Version: file.Version}, url: file.URL}
			g.serveListed(a)
			return
		}
		failed = err
	}
	g.refuseFile(&asked{query: q, ref: pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project, Version: q.route.Version}}, failed)
}

// listed finds the file in its project's page by its path.
func (g *Gateway) listed(q *query) (ecosystem.File, error) {
	ref := pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project}
	settle, err := g.guests.ask(q.sandbox, ref.String(), q.r.Context().Done())
	if err != nil {
		return ecosystem.File{}, err
	}
	friend := false
	defer func() { settle(friend) }()
	p, err := g.page(q.r.Context(), q.source, q.route.Project)
	if err != nil {
		return ecosystem.File{}, err
	}
	if i, ok := p.byPath[q.route.Path]; ok {
		friend = true // whether it may be had is asked next; the name exists
		return p.index.Files[i], nil
	}
	if reason := p.leftOut(q.route.File); reason != "" {
		return ecosystem.File{}, fault.Invalid("%s can't be served: %s", q.route.File, reason)
	}
	return ecosystem.File{}, fault.Invalid("the index of %s does not list %s at this path", q.route.Project, q.route.File)
}

// serveListed asks for the verdict before anything is fetched.
func (g *Gateway) serveListed(a *asked) {
	answer, err := g.door.Artifact(a.r.Context(), a.ask("", 0, false))
	switch {
	case err != nil:
		g.refuseUndecided(a, err)
	case !answer.Decision.Allowed():
		a.refuseDecision(a.ref.String(), answer.Decision, answer.RequestID)
	case a.route.Kind == ecosystem.RouteSidecar:
		g.serveSidecar(a)
	default:
		g.serveArtifact(a)
	}
}

func (a *asked) ask(sha256 string, size int64, serve bool) admission.ArtifactAsk {
	f := a.file
	return admission.ArtifactAsk{
		Sandbox: a.sandbox, Package: a.ref, SourceURL: a.url, SHA256: sha256, Size: size, Serve: serve,
		File: admission.File{Name: f.Name, Version: f.Version, Kind: f.Kind, Digest: f.Digest, Published: f.Published, Yanked: f.Yanked},
	}
}

// refuseFile answers for a file that can't be had, and records why.
func (g *Gateway) refuseFile(a *asked, err error) {
	if a.r.Context().Err() != nil {
		return // nobody is there to be answered; the fetch goes on
	}
	g.log.Warn("a file is refused", "sandbox", a.sandbox, "file", a.route.File, "error", err)
	r := ecosystem.Refusal{Cause: causeOf(err), What: a.ref.String(), Reason: sentence(err)}
	r.RequestID = g.failed(a.query, admission.Failure{
		Package: a.ref, File: a.route.File, SourceURL: a.url, ResolvedBy: policy.ByIntegrity, Reason: r.Reason,
	})
	a.refuse(r)
}

// refuseUndecided answers when the door could not decide or record.
func (g *Gateway) refuseUndecided(a *asked, err error) {
	g.log.Error("a file could not be judged", "sandbox", a.sandbox, "file", a.route.File, "error", err)
	a.refuse(ecosystem.Refusal{Cause: ecosystem.Unreachable, What: a.ref.String(), Reason: "the request could not be decided and recorded"})
}

// serveSidecar sends a file's metadata, after the door knows what it requires,
// and begins to fetch the file, which is asked for next.
func (g *Gateway) serveSidecar(a *asked) {
	ctx := a.r.Context()
	data, err := g.sidecar(ctx, a.source, a.route.Project, a.file)
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	d, err := g.describe(a.source, a.route.Project, a.file, data)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	if err := g.door.Edges(ctx, a.sandbox, a.ref, d.requirements); err != nil {
		g.refuseUndecided(a, err)
		return
	}
	g.fetchAhead(wantFile(a.source, a.route.Project, a.file))
	a.w.Header().Set("ETag", `"`+d.digest+`"`)
	a.w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(a.w, a.r, "", time.Time{}, strings.NewReader(string(data)))
}

// servable refuses a release that requires something by URL: no gateway serves
// that, and pip would try to fetch it.
func (d described) servable() error {
	if d.direct != "" {
		return fault.Invalid("its metadata requires %s from a URL or a repository, not from a registry", d.direct)
	}
	return nil
}

// serveArtifact sends a file: verified, described, recorded, and only then.
func (g *Gateway) serveArtifact(a *asked) {
	ctx := a.r.Context()
	blob, err := g.artifact(ctx, a)
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	defer blob.Close() //nolint:errcheck // read only
	d, err := g.describeBlob(a.source, a.route.Project, a.file, blob)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	if len(d.requirements) > 0 {
		if err := g.door.Edges(ctx, a.sandbox, a.ref, d.requirements); err != nil {
			g.refuseUndecided(a, err)
			return
		}
	}
	if a.r.Method == http.MethodHead { // allowed above, and no byte is served
		a.sendBlob(blob)
		return
	}
	// Whether or not the client is still there, the record has to be whole.
	answer, err := g.door.Artifact(context.WithoutCancel(ctx), a.ask(strings.TrimPrefix(blob.Digest(), "sha256:"), blob.Size(), true))
	switch {
	case err != nil:
		g.refuseUndecided(a, err)
	case !answer.Decision.Allowed():
		a.refuseDecision(a.ref.String(), answer.Decision, answer.RequestID)
	default:
		g.sendRecorded(a, blob, answer.Seq)
	}
}

// artifact gives the file's verified bytes. A cached copy that was changed on
// the disk is an incident even if a good one can be fetched.
func (g *Gateway) artifact(ctx context.Context, a *asked) (*cache.Blob, error) {
	w := wantFile(a.source, a.route.Project, a.file)
	blob, spoilt, err := g.cached(w)
	if spoilt {
		g.failed(a.query, admission.Failure{
			Package: a.ref, File: a.file.Name, SourceURL: a.url, ResolvedBy: policy.ByIntegrity,
			Reason: "the cached copy was changed on the disk; it was set aside and is fetched again",
		})
	}
	if absent(err) {
		return g.fetch(ctx, w)
	}
	return blob, err
}

// sendRecorded sends what was recorded as served, and records it if the client
// did not get all of it.
func (g *Gateway) sendRecorded(a *asked, blob *cache.Blob, seq uint64) {
	out := &counted{ResponseWriter: a.w}
	a.w = out
	a.sendBlob(blob)
	announced, err := strconv.ParseInt(a.w.Header().Get("Content-Length"), 10, 64)
	if err != nil || out.sent >= announced {
		return
	}
	if err := g.door.Aborted(context.WithoutCancel(a.r.Context()), a.sandbox, seq, out.sent); err != nil {
		g.log.Error("an aborted download could not be recorded", "sandbox", a.sandbox, "file", a.file.Name, "error", err)
	}
}

// sendBlob answers GET and HEAD, whole or one range.
func (a *asked) sendBlob(blob *cache.Blob) {
	if strings.Contains(a.r.Header.Get("Range"), ",") {
		a.r.Header.Del("Range") // many ranges in one answer are of use to nobody here
	}
	a.w.Header().Set("ETag", `"`+blob.Digest()+`"`)
	a.w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(a.w, a.r, "", time.Time{}, blob.Reader())
}

// counted counts the body's bytes.
type counted struct {
	http.ResponseWriter
	sent int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent += int64(n)
	return n, err
}

// ReadFrom keeps the server's large copies; the count is the same.
func (c *counted) ReadFrom(r io.Reader) (int64, error) {
	to, ok := c.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return 0, errors.New("the server's answer takes no reader")
	}
	n, err := to.ReadFrom(r)
	c.sent += n
	return n, err
}
