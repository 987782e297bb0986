package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// page is an upstream's index page, read. It is never changed.
type page struct {
	index   *ecosystem.Index // without the files on unknown hosts
	rows    io.ReaderAt
	files   []admission.File // of index.Files, as the door wants them
	byPath  map[string]int   // of index.Files
	hosts   map[string]bool  // of all files that the page lists
	digest  string           // "sha256:<hex>" over the bytes and the known hosts
	url     string
	etag    string
	fetched time.Time
}

// leftOut gives the reason for which a listed file can't be had by anybody.
func (p *page) leftOut(name string) string {
	for _, l := range p.index.LeftOut {
		if l.Name == name {
			return l.Reason
		}
	}
	return ""
}

// page gives a project's page: from memory or the disk while it is fresh, as
// it is while it is being confirmed, else from the upstream. If that can't be
// reached the page that we have is served, however old.
func (g *Gateway) page(ctx context.Context, s *source, project string) (*page, error) {
	have := g.havePage(s, project)
	if have != nil {
		age := time.Since(have.fetched)
		if age < g.cfg.Limits.Fresh {
			return have, nil
		}
		if age < g.cfg.Limits.Stale {
			g.tasks.run(func() {
				if _, err := g.refresh(g.life, s, project, have); err != nil {
					g.log.Warn("an index page could not be confirmed", "index", s.index, "project", project, "error", err)
				}
			})
			return have, nil
		}
	}
	p, err := g.refresh(ctx, s, project, have)
	if have != nil && errors.Is(err, fault.ErrUnavailable) && ctx.Err() == nil {
		g.log.Warn("the upstream is not available; an old page is served", "index", s.index, "project", project, "error", err)
		return have, nil
	}
	return p, err
}

func pageKey(s *source, project string) string { return s.index + " " + project }

func storeKey(s *source, project string) cache.PageKey {
	return cache.PageKey{Ecosystem: string(s.ecosystem()), Upstream: s.index, Project: project}
}

// havePage looks into memory and onto the disk.
func (g *Gateway) havePage(s *source, project string) *page {
	if p, ok := g.pages.get(pageKey(s, project)); ok {
		return p
	}
	stored, err := g.store.GetPage(storeKey(s, project))
	if err != nil {
		return nil
	}
	p, err := g.readPage(s, project, stored)
	if err != nil {
		return nil // an older version may have kept what this one refuses
	}
	g.keepPage(s, project, p, len(stored.Body))
	return p
}

func (g *Gateway) keepPage(s *source, project string, p *page, size int) {
	// A parsed file takes about as much again as its bytes on the page.
	g.pages.put(pageKey(s, project), p, int64(2*size+4096))
}

// refresh asks the upstream, once however many want the page, and goes on when
// they give up.
func (g *Gateway) refresh(ctx context.Context, s *source, project string, have *page) (*page, error) {
	return flight(ctx, g, "page "+pageKey(s, project), func() (*page, error) {
		return g.fetchPage(g.life, s, project, have)
	})
}

func (g *Gateway) fetchPage(ctx context.Context, s *source, project string, have *page) (*page, error) {
	ask := s.protocol.IndexAsk(s.index, project)
	pageAsk := upstream.PageAsk{URL: ask.URL, Accept: ask.Accept, Types: ask.Types}
	if have != nil {
		pageAsk.ETag = have.etag
	}
	var body upstream.Memory
	got, err := s.client.Page(ctx, pageAsk, &body)
	if err != nil {
		return nil, err
	}
	if got.NotModified {
		confirmed := *have
		confirmed.fetched = time.Now()
		if stored, err := g.store.GetPage(storeKey(s, project)); err == nil {
			stored.Fetched = confirmed.fetched
			g.storePage(s, project, stored)
			g.keepPage(s, project, &confirmed, len(stored.Body))
		}
		return &confirmed, nil
	}
	stored := cache.Page{URL: got.URL, ContentType: got.ContentType, ETag: got.ETag, Fetched: time.Now(), Body: body.Bytes()}
	p, err := g.readPage(s, project, stored)
	if err != nil {
		return nil, err
	}
	g.storePage(s, project, stored)
	g.keepPage(s, project, p, len(body.Bytes()))
	return p, nil
}

// storePage keeps a page for the next start. A full disk must not stop what
// can go on in memory.
func (g *Gateway) storePage(s *source, project string, p cache.Page) {
	if err := g.store.PutPage(storeKey(s, project), p); err != nil {
		g.log.Warn("an index page could not be kept", "index", s.index, "project", project, "error", err)
	}
}

// readPage parses a page and leaves out the files on hosts that the upstream's
// client would not ask.
func (g *Gateway) readPage(s *source, project string, stored cache.Page) (*page, error) {
	rows := &ecosystem.MemoryRows{}
	ix, err := s.protocol.ParseIndex(project, ecosystem.PageOf(stored.URL, stored.ContentType, stored.Body), rows)
	if err != nil {
		return nil, err
	}
	p := &page{
		index: ix, rows: rows, url: stored.URL, etag: stored.ETag, fetched: stored.Fetched,
		hosts: map[string]bool{}, byPath: make(map[string]int, len(ix.Files)),
		files: make([]admission.File, 0, len(ix.Files)), // never nil: nil would mean "not told"
	}
	listed := ix.Files[:0]
	for _, f := range ix.Files {
		if u, err := url.Parse(f.URL); err == nil {
			p.hosts[u.Host] = true
		}
		if !s.client.Permits(f.URL) {
			ix.LeftOut = append(ix.LeftOut, ecosystem.LeftOut{Name: f.Name, Reason: "it is on a host that is not known as a file host of the upstream"})
			continue
		}
		p.byPath[f.Path] = len(listed)
		listed = append(listed, f)
		p.files = append(p.files, admission.File{Name: f.Name, Version: f.Version, Kind: f.Kind, Digest: f.Digest, Published: f.Published, Yanked: f.Yanked})
	}
	ix.Files = listed
	p.digest = pageDigest(stored.Body, s.client.FileHosts())
	return p, nil
}

// pageDigest covers what the list of files depends on.
func pageDigest(body []byte, hosts []string) string {
	sum := sha256.New()
	sum.Write(body)
	_, _ = io.WriteString(sum, "\x00"+strings.Join(hosts, "\x00")) // a hash takes everything
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
