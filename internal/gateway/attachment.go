package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// Limits of attachments.
const (
	maxAttachment  = 16 << 20 // bytes, unless the protocol says otherwise
	maxAttachments = 100_000  // that may change, kept over a restart
)

// keptAttachment is one that may change, as the upstream sent it.
type keptAttachment struct {
	Fetched time.Time `json:"fetched"`
	Body    []byte    `json:"body"`
}

// attached is a verified attachment.
type attached struct {
	ecosystem.Attachment
	digest  string   // the log's, "" if it has none
	digests []string // all that say which bytes these are
}

// serveAttachment answers with one of a release's small files. It is judged by
// the name, before any upstream hears that, and again when more is known: its
// digest, and the version if the request is a query.
func (g *Gateway) serveAttachment(q *query) {
	attacher, ok := q.source.Protocol.(ecosystem.Attacher)
	if !ok {
		q.refuse(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway has no such file"})
		return
	}
	if _, ok := g.takeOwner(q); !ok {
		return
	}
	ask := attacher.AttachmentAsk(q.source.Index, q.route)
	a := q.metadata(ask.URL)
	if !g.shown(a) {
		return
	}
	settle, err := g.guests.ask(q.sandbox, q.ref("").String(), q.admitted, q.r.Context().Done())
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	found, err := g.attachment(q.r.Context(), q.source, attacher, q.route)
	if err != nil {
		a.kin = stranger
	}
	settle(a.kin)
	switch {
	case errors.Is(err, fault.ErrNotFound): // nothing was withheld, and there is nothing to record
		q.refuse(ecosystem.Refusal{Cause: ecosystem.Missing, What: a.ref.String(), Reason: sentence(err)})
	case err != nil:
		g.refuseFile(a, err)
	default:
		g.sendAttachment(a, found)
	}
}

// metadata is a question about what a resolver reads of a release.
func (q *query) metadata(location string) *asked {
	name, version := q.route.File, q.route.Version
	if u, err := url.Parse(location); name == "" && err == nil {
		name = path.Base(u.Path)
	}
	if q.route.Query {
		version = "" // not known before the upstream has answered
	}
	return &asked{
		query: q, ref: q.ref(version), url: location,
		file: ecosystem.File{Name: name, Version: version, Kind: policy.KindMetadata},
	}
}

func (g *Gateway) sendAttachment(a *asked, found attached) {
	a.ref.Version, a.file.Version = found.Version, found.Version
	a.file.Digest, a.digests = found.digest, found.digests
	if found.Witnessed {
		a.release = g.fileOf(a.r.Context(), a, found.Version)
	}
	if (a.route.Query || len(a.digests) > 0 || a.release != nil) && !g.shown(a) {
		return
	}
	if d := found.requirements(); len(d.Requirements) > 0 {
		if err := g.door.Edges(a.r.Context(), a.sandbox, a.ref, d.Requirements); err != nil {
			g.refuseUndecided(a, err)
			return
		}
	}
	if !g.show(a, door.ShownMetadata, a.file.Name, found.Body) {
		return
	}
	sum := sha256.Sum256(found.Body)
	a.w.Header().Set("ETag", `"sha256:`+hex.EncodeToString(sum[:])+`"`)
	a.w.Header().Set("Content-Type", found.ContentType)
	http.ServeContent(a.w, a.r, "", time.Time{}, bytes.NewReader(found.Body))
}

// requirements are what an attachment says that its release requires.
func (f attached) requirements() (d described) {
	for _, r := range f.Requirements {
		if !r.Direct { // what it names no gateway serves; that refuses the release's file, not what is said of it
			d.require([]ecosystem.Requirement{r})
		}
	}
	return d
}

// fileOf is the file of the release that an attachment describes, as far as it is
// known without its bytes: what the attachment requires counts as that file does, by
// its age and all else that looks at a file. nil if the protocol's files have no
// addresses, or the file can't be had: then it admits nothing.
func (g *Gateway) fileOf(ctx context.Context, a *asked, version string) *door.File {
	addresser, ok := a.source.Protocol.(ecosystem.Addresser)
	if !ok {
		return nil
	}
	route := a.route
	route.Version = version
	f, err := g.addressed(ctx, a.source, addresser, route)
	if err != nil {
		g.log.Debug("what a release's metadata requires admits nothing: its file is not known", "release", a.ref.String(), "error", err)
		return nil
	}
	file := pages.DoorFile(f)
	return &file
}

// attachment gives a verified attachment: one that is witnessed from the cache
// for ever, another from there while it is fresh, or while the upstream is down.
func (g *Gateway) attachment(ctx context.Context, s *source, attacher ecosystem.Attacher, r ecosystem.Route) (attached, error) {
	key := fileKey(s, r.Project, r.Version+"/"+r.File)
	body, err := g.boundBody(key)
	if err == nil {
		return g.readAttachment(ctx, s, attacher, r, body)
	}
	if !absent(err) {
		return attached{}, err
	}
	have, known := g.attachments.Get(attachmentKey(key))
	if age := time.Since(have.Fetched); !known || age < 0 || age >= g.cfg.Limits.Fresh {
		got, err := flight.Once(ctx, g.flights, attachmentKey(key), func(ctx context.Context) (keptAttachment, error) {
			return g.fetchAttachment(ctx, s, attacher, r, key)
		})
		if err == nil {
			have = got
		} else if !known || !errors.Is(err, fault.ErrUnavailable) || ctx.Err() != nil {
			return attached{}, err
		}
	}
	return g.readAttachment(ctx, s, attacher, r, have.Body)
}

// attachmentKey names an attachment that may change.
type attachmentKey cache.Key

// String implements kept.Key.
func (k attachmentKey) String() string {
	return k.Ecosystem + " " + k.Upstream + " " + k.Project + " " + k.File
}

// boundBody gives the bytes that an attachment is bound to for ever.
func (g *Gateway) boundBody(key cache.Key) ([]byte, error) {
	b, bound, err := g.store.Binding(key)
	if err != nil {
		return nil, err
	}
	if !bound {
		return nil, fault.New(fault.ErrNotFound, "the attachment is not in the cache")
	}
	blob, err := g.store.Get(b.SHA256)
	if err != nil {
		return nil, err
	}
	defer blob.Close() //nolint:errcheck // read only
	return io.ReadAll(blob.Reader())
}

// readAttachment reads an attachment strictly, and has the log vouch for it if
// it is of a kind that the log knows.
func (g *Gateway) readAttachment(ctx context.Context, s *source, attacher ecosystem.Attacher, r ecosystem.Route, body []byte) (attached, error) {
	read, err := attacher.Attachment(r, body)
	if err != nil {
		return attached{}, err
	}
	if read.Version == "" && !r.Query {
		read.Version = r.Version
	}
	if read.Version == "" || (!r.Query && !pkgref.SameVersion(s.Ecosystem(), read.Version, r.Version)) {
		return attached{}, fault.Invalid("the upstream answers with another release than was asked for")
	}
	found := attached{Attachment: read}
	witness, ok := s.Protocol.(ecosystem.Witness)
	if !read.Witnessed || !ok {
		return found, nil
	}
	sum, err := witness.SumAttachment(r, read.Body)
	if err != nil {
		return attached{}, err
	}
	found.digests = []string{sum}
	if s.log == nil {
		return found, nil
	}
	said, err := s.log.Vouched(ctx, r.Project, read.Version)
	if err == nil && sum != said.Attachment {
		err = fault.Invalid("the digest of %s is not the one that the upstream's transparency log has of it", r.File)
	}
	found.digest = said.Attachment
	return found, err
}

// fetchAttachment asks the upstream, and keeps what was verified.
func (g *Gateway) fetchAttachment(ctx context.Context, s *source, attacher ecosystem.Attacher, r ecosystem.Route, key cache.Key) (keptAttachment, error) {
	ask := attacher.AttachmentAsk(s.Index, r)
	body, err := small(ctx, s.Client, ask, maxAttachment)
	if err != nil {
		return keptAttachment{}, err
	}
	found, err := g.readAttachment(ctx, s, attacher, r, body)
	if err != nil {
		return keptAttachment{}, err
	}
	got := keptAttachment{Fetched: time.Now(), Body: body}
	if found.Witnessed && !r.Query {
		return got, g.bindBody(s, key, ask.URL, body)
	}
	g.attachments.Put(attachmentKey(key), got)
	return got, nil
}

// bindBody stores a verified body and binds it to its key for ever. The log
// vouches for it anew at each use, so the binding needs no digest of the log's.
func (g *Gateway) bindBody(s *source, key cache.Key, location string, body []byte) error {
	out, err := g.store.Create(int64(len(body)), 0)
	if err != nil {
		return err
	}
	w := wanted{source: s, key: key, url: location}
	_, err = out.Write(body)
	if err == nil {
		err = g.stillTheFirst(w, out.Sums())
	}
	if err != nil {
		out.Abort()
		return err
	}
	sums := out.Sums()
	if err := out.Commit(); err != nil {
		return err
	}
	return g.bind(w, sums)
}

// small asks an upstream for an answer that is held in memory.
func small(ctx context.Context, client *upstream.Client, ask ecosystem.Ask, most int64) ([]byte, error) {
	if ask.Most > 0 {
		most = ask.Most
	}
	var body upstream.Memory
	if _, err := client.Page(ctx, upstream.PageAsk{URL: ask.URL, Accept: ask.Accept, Types: ask.Types, Most: most}, &body); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}
