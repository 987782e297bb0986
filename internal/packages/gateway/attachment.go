package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
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

// requirements are what an attachment says that its release requires.
func (f attached) requirements() (d described) {
	for _, r := range f.Requirements {
		if !r.Direct { // what it names no gateway serves; that refuses the release's file, not what is said of it
			d.require([]ecosystem.Requirement{r})
		}
	}
	return d
}

// attachments are those of all upstreams, verified and kept.
type attachments struct {
	artifacts *artifacts.Artifacts
	flights   *coalesce.Group
	kept      *memo.Disk[attachmentKey, keptAttachment] // those that may change
	fresh     time.Duration
}

func newAttachments(cfg Config, store *cache.Store, flights *coalesce.Group, as *artifacts.Artifacts) (*attachments, error) {
	disk, err := memo.NewDisk(store, "attachments", maxAttachments, memo.JSON[attachmentKey, keptAttachment](), cfg.Log, "an attachment")
	return &attachments{artifacts: as, flights: flights, kept: disk, fresh: cfg.Limits.Fresh}, err
}

// getAttachment gives a verified attachment: one that is witnessed from the cache
// for ever, another from there while it is fresh, or while the upstream is down.
func (as *attachments) getAttachment(ctx context.Context, s *source, attacher ecosystem.Attacher, r ecosystem.Route) (attached, error) {
	key := s.cacheKey(r.Project, r.Version+"/"+r.File)
	body, err := as.artifacts.Bound(key)
	if err == nil {
		return readAttachment(ctx, s, attacher, r, body)
	}
	if !artifacts.Absent(err) {
		return attached{}, err
	}
	have, known := as.kept.Get(attachmentKey(key))
	if age := time.Since(have.Fetched); !known || age < 0 || age >= as.fresh {
		got, err := coalesce.Once(ctx, as.flights, attachmentKey(key), func(ctx context.Context) (keptAttachment, error) {
			return as.fetchAttachment(ctx, s, attacher, r, key)
		})
		if err == nil {
			have = got
		} else if !known || !errors.Is(err, fault.ErrUnavailable) || ctx.Err() != nil {
			return attached{}, err
		}
	}
	return readAttachment(ctx, s, attacher, r, have.Body)
}

// attachmentKey names an attachment that may change.
type attachmentKey cache.Key

// String implements memo.Key.
func (k attachmentKey) String() string {
	return k.Ecosystem + " " + k.Upstream + " " + k.Project + " " + k.File
}

// readAttachment reads an attachment strictly, and has the log vouch for it if
// it is of a kind that the log knows.
func readAttachment(ctx context.Context, s *source, attacher ecosystem.Attacher, r ecosystem.Route, body []byte) (attached, error) {
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
func (as *attachments) fetchAttachment(ctx context.Context, s *source, attacher ecosystem.Attacher, r ecosystem.Route, key cache.Key) (keptAttachment, error) {
	ask := attacher.AttachmentAsk(s.Index, r)
	body, err := fetchSmall(ctx, s.Client, ask, maxAttachment, subjectOf(s, r))
	if err != nil {
		return keptAttachment{}, err
	}
	found, err := readAttachment(ctx, s, attacher, r, body)
	if err != nil {
		return keptAttachment{}, err
	}
	got := keptAttachment{Fetched: time.Now(), Body: body}
	if found.Witnessed && !r.Query {
		return got, as.artifacts.BindBody(key, body)
	}
	as.kept.Put(attachmentKey(key), got)
	return got, nil
}

// fetchSmall asks an upstream for an answer that is held in memory, as it is: there is a digest or a signature of
// most of them.
func fetchSmall(ctx context.Context, client *upstream.Client, ask ecosystem.Ask, most int64, about upstream.Subject) ([]byte, error) {
	if ask.Most > 0 {
		most = ask.Most
	}
	var body upstream.Memory
	if _, err := client.Page(ctx, upstream.PageAsk{URL: ask.URL, Accept: ask.Accept, Types: ask.Types, Most: most, Exact: true, Subject: about}, &body); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// subjectOf is what is on record of a question for what a route names.
func subjectOf(s *source, r ecosystem.Route) upstream.Subject {
	return upstream.Subject{Package: pkgref.Ref{Ecosystem: s.Ecosystem(), Name: r.Project, Version: r.Version}, File: r.File}
}
