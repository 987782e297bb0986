package pages

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// The keys of flights.
type (
	loading struct {
		key
		known string // the file hosts
	}
	refreshing struct {
		key
		anew bool // what another confirms may be what this one can't use
	}
)

// Page gives a project's page: from memory or the disk while it is fresh, as
// it is while it is being confirmed, else from the upstream. If that can't be
// reached the page that we have is served, however old.
func (ps *Pages) Page(ctx context.Context, s Source, project string) (*Page, error) {
	have := ps.Have(ctx, s, project)
	if have == nil || have.gone.Load() {
		return ps.refresh(ctx, s, project, have)
	}
	age := time.Since(have.fetched)
	if age >= 0 && age < ps.cfg.Fresh {
		return have, nil
	}
	if age >= 0 && age < ps.cfg.Stale {
		later := ps.cfg.Flights.LifeFor(ctx)
		ps.cfg.Flights.Run(func() {
			what, fetch := ps.refreshing(s, project, have)
			if _, untold, err := coalesce.Ahead(later, ps.cfg.Flights, what, fetch); err != nil {
				ps.cfg.Log.Warn("an index page could not be confirmed", "index", s.Index, "project", project, "error", err)
				ps.cfg.Unconfirmed(s, project, untold, err)
			}
		})
		return have, nil
	}
	p, err := ps.refresh(ctx, s, project, have)
	if errors.Is(err, fault.ErrUnavailable) && ctx.Err() == nil {
		ps.cfg.Log.Warn("the upstream is not available; an old page is served", "index", s.Index, "project", project, "error", err)
		return have, nil
	}
	return p, err
}

// Have looks into memory and onto the disk; nil if there is no page. A page that it gives may have lost its rows.
func (ps *Pages) Have(ctx context.Context, s Source, project string) *Page {
	known := s.knownHosts()
	if p, ok := ps.read.Get(pageKey(s, project)); ok && p.known == known && !p.gone.Load() {
		return p
	}
	p, err := coalesce.Once(ctx, ps.cfg.Flights, loading{pageKey(s, project), known}, func(context.Context) (*Page, error) {
		return ps.loadPage(s, project)
	})
	if err != nil {
		return nil
	}
	return p
}

// Forget has all pages read from the disk again: what was left out for its host may
// be listed now.
func (ps *Pages) Forget() { ps.read.Clear() }

func (ps *Pages) rememberPage(s Source, project string, p *Page) {
	ps.read.Put(pageKey(s, project), p, p.size)
}

// refresh asks the upstream, once however many want the page, and goes on when
// they give up.
func (ps *Pages) refresh(ctx context.Context, s Source, project string, have *Page) (*Page, error) {
	what, fetch := ps.refreshing(s, project, have)
	return coalesce.Once(ctx, ps.cfg.Flights, what, fetch)
}

func (ps *Pages) refreshing(s Source, project string, have *Page) (refreshing, func(ctx context.Context) (*Page, error)) {
	what := refreshing{key: pageKey(s, project), anew: have == nil || have.gone.Load()}
	return what, func(ctx context.Context) (*Page, error) {
		if p := ps.newerPage(s, project, have); p != nil {
			return p, nil
		}
		return ps.fetchPage(ctx, s, project, have)
	}
}

// newerPage is a page that another flight has brought since somebody looked and saw
// have; nil if there is none.
func (ps *Pages) newerPage(s Source, project string, have *Page) *Page {
	p, ok := ps.read.Get(pageKey(s, project))
	if !ok || p.gone.Load() || p.known != s.knownHosts() {
		return nil
	}
	if have != nil && !have.gone.Load() && !p.fetched.After(have.fetched) {
		return nil
	}
	return p
}

func (ps *Pages) fetchPage(ctx context.Context, s Source, project string, have *Page) (*Page, error) {
	ask := s.Protocol.IndexAsk(s.Index, project)
	pageAsk := upstream.PageAsk{URL: ask.URL, Accept: ask.Accept, Types: ask.Types, Most: ask.Most}
	pageAsk.Subject.Package = pkgref.Ref{Ecosystem: s.Ecosystem(), Name: project}
	whole := have != nil && !have.gone.Load()
	if whole {
		pageAsk.ETag = have.etag
	}
	raw := ps.cfg.Store.Spool()
	defer raw.Close()
	got, err := s.Client.Page(ctx, pageAsk, raw)
	if err != nil {
		return nil, err
	}
	if got.Masked {
		ps.cfg.Log.Warn("an index page has the credential in it by which the upstream knows the gateway; it is masked there, so what the page links to by it can't be had", "index", s.Index, "project", project)
	}
	if whole && got.NotModified {
		return ps.confirm(s, project, have, have.etag), nil
	}
	if whole && raw.Digest() == have.source && got.URL == have.URL && got.ContentType == have.contentType {
		return ps.confirm(s, project, have, got.ETag), nil
	}
	return ps.ingest(ctx, s, project, have, got, raw)
}

// confirm makes a page fresh again that the upstream still has.
func (ps *Pages) confirm(s Source, project string, have *Page, etag string) *Page {
	confirmed := *have
	confirmed.fetched, confirmed.etag = time.Now(), etag
	if err := ps.cfg.Store.ConfirmPage(storeKey(s, project), confirmed.fetched); err != nil {
		ps.cfg.Log.Warn("an index page could not be kept", "index", s.Index, "project", project, "error", err)
	}
	ps.rememberPage(s, project, &confirmed)
	return &confirmed
}

// loadPage reads a kept page and verifies its rows.
func (ps *Pages) loadPage(s Source, project string) (*Page, error) {
	var ix *ecosystem.Index
	stored, err := ps.cfg.Store.GetPage(storeKey(s, project), func(from io.Reader) (err error) {
		ix, err = readKept(from)
		return err
	})
	if err != nil {
		return nil, err
	}
	p := newPage(s, ix, stored)
	if stored.Format != keptFormat {
		p.gone.Store(true)
		return p, nil
	}
	rows, err := p.openRows()
	if err != nil {
		p.gone.Store(true)
		return p, nil //nolint:nilerr // that it is gone says it
	}
	_ = rows.Close() // read only
	ps.rememberPage(s, project, p)
	return p, nil
}
