// Package pages has registries' index pages: it fetches, reads and keeps them, has
// the door judge them, and renders what the verdicts show.
//
// Vocabulary: a *page* is an index page, read; its *rows* are the pieces of the
// upstream's text from which pages are rendered; a page is *judged* once the door
// has a verdict on each of its files; what is *rendered* is what a client gets.
package pages

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/kept"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/turns"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// Source is an upstream whose pages are read.
type Source struct {
	Protocol ecosystem.Protocol
	Client   *upstream.Client
	Index    string // the index's URL, also the upstream's identity in cache keys
	Apart    string // with whom its pages are shared; "" is with all who may have them
	// Times finds out when releases were published of which the index does not say
	// it, as far as it can; nil: nobody knows.
	Times func(ctx context.Context, project string, versions []string) map[string]time.Time
}

// Ecosystem is that of its protocol.
func (s Source) Ecosystem() pkgref.Ecosystem { return s.Protocol.Ecosystem() }

// Toolchain tells whether a project is one that tools fetch by themselves.
func (s Source) Toolchain(project string) bool {
	n, ok := s.Protocol.(ecosystem.ToolchainNamer)
	return ok && n.Toolchain(project)
}

// knownHosts are the file hosts that a page is read with.
func (s Source) knownHosts() string { return strings.Join(s.Client.FileHosts(), "\x00") }

// Judge gives verdicts on pages.
type Judge interface {
	Index(ctx context.Context, ask door.IndexAsk) (door.IndexAnswer, error)
}

// Config of Pages.
type Config struct {
	Store   *cache.Store
	Flights *flight.Group
	Door    Judge
	Log     *slog.Logger     // for the operator
	Now     func() time.Time // when something that is seen now was first seen

	Fresh    time.Duration // for which a page is not asked for again
	Stale    time.Duration // for which it is served while it is asked for again
	Memory   int64         // bytes of pages kept in memory
	Rendered int64         // bytes of rendered pages, packed
	Required int64         // bytes of what the releases of pages require
}

// Pages are those of all upstreams. Make one with New.
type Pages struct {
	cfg      Config
	read     *kept.Memory[key, *Page]
	rendered *kept.Memory[renderKey, *Rendered]
	required *kept.Findings[requiredKey, *requirements]
	heavy    *turns.Shares // for reading and rendering large pages
	zips     sync.Pool     // of *gzip.Writer, which are large
}

// New opens what is kept.
func New(cfg Config) (*Pages, error) {
	disk, err := kept.NewDisk(cfg.Store, "requirements", maxRequirements, requirementsFormat(), cfg.Log, "what the releases of a page require")
	if err != nil {
		return nil, err
	}
	required := kept.NewMemory[requiredKey, *requirements](cfg.Required)
	return &Pages{
		cfg:      cfg,
		read:     kept.NewMemory[key, *Page](cfg.Memory),
		rendered: kept.NewMemory[renderKey, *Rendered](cfg.Rendered),
		required: kept.NewFindings(required, disk, cfg.Flights, func(_ requiredKey, r *requirements) int64 { return r.size() }),
		heavy:    turns.New(turns.Limits{All: 2, Each: 2}),
	}, nil
}

// key names a project's page among those that are shared with the same.
type key struct{ index, project, apart string }

func keyOf(s Source, project string) key { return key{s.Index, project, s.Apart} }

// String has one text for each key: neither an index nor a project has a space.
func (k key) String() string { return k.index + " " + k.project + " " + k.apart }

func storeKey(s Source, project string) cache.PageKey {
	return cache.PageKey{Ecosystem: string(s.Ecosystem()), Upstream: s.Index, Project: strings.TrimSpace(project + " " + s.Apart)}
}

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
			if _, err := ps.refresh(later, s, project, have); err != nil {
				ps.cfg.Log.Warn("an index page could not be confirmed", "index", s.Index, "project", project, "error", err)
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

// Have looks into memory and onto the disk; nil if there is no page. What it gives
// may have lost its rows.
func (ps *Pages) Have(ctx context.Context, s Source, project string) *Page {
	known := s.knownHosts()
	if p, ok := ps.read.Get(keyOf(s, project)); ok && p.known == known && !p.gone.Load() {
		return p
	}
	p, err := flight.Once(ctx, ps.cfg.Flights, loading{keyOf(s, project), known}, func(context.Context) (*Page, error) {
		return ps.load(s, project)
	})
	if err != nil {
		return nil
	}
	return p
}

// Forget has all pages read from the disk again: what was left out for its host may
// be listed now.
func (ps *Pages) Forget() { ps.read.Clear() }

func (ps *Pages) remember(s Source, project string, p *Page) {
	ps.read.Put(keyOf(s, project), p, p.size)
}

// refresh asks the upstream, once however many want the page, and goes on when
// they give up.
func (ps *Pages) refresh(ctx context.Context, s Source, project string, have *Page) (*Page, error) {
	what := refreshing{key: keyOf(s, project), anew: have == nil || have.gone.Load()}
	return flight.Once(ctx, ps.cfg.Flights, what, func(ctx context.Context) (*Page, error) {
		if p := ps.newer(s, project, have); p != nil {
			return p, nil
		}
		return ps.fetch(ctx, s, project, have)
	})
}

// newer is a page that another flight has brought since somebody looked and saw
// have; nil if there is none.
func (ps *Pages) newer(s Source, project string, have *Page) *Page {
	p, ok := ps.read.Get(keyOf(s, project))
	if !ok || p.gone.Load() || p.known != s.knownHosts() {
		return nil
	}
	if have != nil && !have.gone.Load() && !p.fetched.After(have.fetched) {
		return nil
	}
	return p
}

func (ps *Pages) fetch(ctx context.Context, s Source, project string, have *Page) (*Page, error) {
	ask := s.Protocol.IndexAsk(s.Index, project)
	pageAsk := upstream.PageAsk{URL: ask.URL, Accept: ask.Accept, Types: ask.Types, Most: ask.Most}
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
	ps.remember(s, project, &confirmed)
	return &confirmed
}
