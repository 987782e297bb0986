package gateway

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// page is an upstream's index page, read: its index in memory, its rows in the
// cache. It is never changed.
type page struct {
	index       *ecosystem.Index // without the files on unknown hosts
	byPath      map[string]int   // of index.Files
	hosts       map[string]bool  // of all files that the page lists
	stored      *cache.Rows
	source      string // digest of the upstream's bytes
	known       string // the file hosts that were known when it was read
	digest      string // over the bytes, the known hosts and the files' times
	url         string
	etag        string // empty, or what the upstream is asked with next
	contentType string
	fetched     time.Time
	size        int64 // about what it takes in memory, in bytes
	// published are times that the index does not have and a witness does, by
	// version; nil: it was not asked.
	published map[string]time.Time
	// gone is set once the rows can't be had, or not be understood: the page is
	// then good for nothing but its files' times. Copies share it.
	gone *atomic.Bool
}

// openRows opens the rows for reading. The caller closes them.
func (p *page) openRows() (cache.OpenRows, error) {
	rows, err := p.stored.Open()
	if errors.Is(err, cache.ErrRowsGone) {
		p.gone.Store(true) // whoever asks for the page next has it fetched again
	}
	return rows, err
}

// row gives a copy of one piece of the rows; nil for an empty one.
func (p *page) row(e ecosystem.Extent) ([]byte, error) {
	if e.Length == 0 {
		return nil, nil
	}
	rows, err := p.openRows()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the index page has changed meanwhile; ask again")
	}
	defer rows.Close()
	return ecosystem.Slice(rows, e)
}

// doorFiles are the index's files as the door wants them; never nil, which
// would mean "not told".
func (p *page) doorFiles() []door.File {
	files := make([]door.File, len(p.index.Files))
	for i, f := range p.index.Files {
		files[i] = doorFile(f)
		if f.Published.IsZero() {
			files[i].Published = p.published[f.Version]
		}
	}
	return files
}

// doorFile is a file as far as policy cares.
func doorFile(f ecosystem.File) door.File {
	return door.File{
		Name: f.Name, Version: f.Version, Kind: f.Kind, Digest: f.Digest, Size: f.Size,
		Published: f.Published, FirstSeen: f.FirstSeen, Yanked: f.Yanked, Scripts: f.Scripts, PartOf: f.PartOf,
	}
}

// page gives a project's page: from memory or the disk while it is fresh, as
// it is while it is being confirmed, else from the upstream. If that can't be
// reached the page that we have is served, however old.
func (g *Gateway) page(ctx context.Context, s *source, project string) (*page, error) {
	have := g.havePage(ctx, s, project)
	if have == nil || have.gone.Load() {
		return g.refresh(ctx, s, project, have)
	}
	age := time.Since(have.fetched)
	if age >= 0 && age < g.cfg.Limits.Fresh {
		return have, nil
	}
	if age >= 0 && age < g.cfg.Limits.Stale {
		later := g.lifeFor(ctx)
		g.tasks.run(func() {
			if _, err := g.refresh(later, s, project, have); err != nil {
				g.log.Warn("an index page could not be confirmed", "index", s.index, "project", project, "error", err)
			}
		})
		return have, nil
	}
	p, err := g.refresh(ctx, s, project, have)
	if errors.Is(err, fault.ErrUnavailable) && ctx.Err() == nil {
		g.log.Warn("the upstream is not available; an old page is served", "index", s.index, "project", project, "error", err)
		return have, nil
	}
	return p, err
}

// pageKey and storeKey name a project's page among those that are shared with the
// same. No project has a space in its name.
func pageKey(s *source, project string) string { return s.index + " " + project + " " + s.apart }

func storeKey(s *source, project string) cache.PageKey {
	return cache.PageKey{Ecosystem: string(s.ecosystem()), Upstream: s.index, Project: strings.TrimSpace(project + " " + s.apart)}
}

// knownHosts are the file hosts that a page is read with.
func (s *source) knownHosts() string { return strings.Join(s.client.FileHosts(), "\x00") }

// havePage looks into memory and onto the disk. What it gives may be gone.
func (g *Gateway) havePage(ctx context.Context, s *source, project string) *page {
	known := s.knownHosts()
	if p, ok := g.pages.get(pageKey(s, project)); ok && p.known == known && !p.gone.Load() {
		return p
	}
	p, err := flight(ctx, g, "load "+pageKey(s, project)+" "+known, func(context.Context) (*page, error) {
		return g.loadPage(s, project)
	})
	if err != nil {
		return nil
	}
	return p
}

// loadPage reads a kept page and verifies its rows.
func (g *Gateway) loadPage(s *source, project string) (*page, error) {
	var ix *ecosystem.Index
	kept, err := g.store.GetPage(storeKey(s, project), func(from io.Reader) (err error) {
		ix, err = readKept(from)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := newPage(s, ix, kept)
	if kept.Format != keptFormat {
		p.gone.Store(true)
		return p, nil
	}
	rows, err := p.openRows()
	if err != nil {
		p.gone.Store(true)
		return p, nil //nolint:nilerr // that it is gone says it
	}
	_ = rows.Close() // read only
	g.pages.put(pageKey(s, project), p, p.size)
	return p, nil
}

// refresh asks the upstream, once however many want the page, and goes on when
// they give up.
func (g *Gateway) refresh(ctx context.Context, s *source, project string, have *page) (*page, error) {
	key := "page " + pageKey(s, project)
	if have == nil || have.gone.Load() {
		key += " anew" // what another confirms may be what this one can't use
	}
	return flight(ctx, g, key, func(ctx context.Context) (*page, error) {
		if p := g.newer(s, project, have); p != nil {
			return p, nil
		}
		return g.fetchPage(ctx, s, project, have)
	})
}

// newer is a page that another flight has brought since somebody looked and saw
// have; nil if there is none.
func (g *Gateway) newer(s *source, project string, have *page) *page {
	p, ok := g.pages.get(pageKey(s, project))
	if !ok || p.gone.Load() || p.known != s.knownHosts() {
		return nil
	}
	if have != nil && !have.gone.Load() && !p.fetched.After(have.fetched) {
		return nil
	}
	return p
}

func (g *Gateway) fetchPage(ctx context.Context, s *source, project string, have *page) (*page, error) {
	ask := s.protocol.IndexAsk(s.index, project)
	pageAsk := upstream.PageAsk{URL: ask.URL, Accept: ask.Accept, Types: ask.Types, Most: ask.Most}
	whole := have != nil && !have.gone.Load()
	if whole {
		pageAsk.ETag = have.etag
	}
	raw := g.store.Spool()
	defer raw.Close()
	got, err := s.client.Page(ctx, pageAsk, raw)
	if err != nil {
		return nil, err
	}
	if whole && got.NotModified {
		return g.confirm(s, project, have, have.etag), nil
	}
	if whole && raw.Digest() == have.source && got.URL == have.url && got.ContentType == have.contentType {
		return g.confirm(s, project, have, got.ETag), nil
	}
	return g.ingest(ctx, s, project, have, got, raw)
}

// confirm makes a page fresh again that the upstream still has.
func (g *Gateway) confirm(s *source, project string, have *page, etag string) *page {
	confirmed := *have
	confirmed.fetched, confirmed.etag = time.Now(), etag
	if err := g.store.ConfirmPage(storeKey(s, project), confirmed.fetched); err != nil {
		g.log.Warn("an index page could not be kept", "index", s.index, "project", project, "error", err)
	}
	g.pages.put(pageKey(s, project), &confirmed, confirmed.size)
	return &confirmed
}
