package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Door is the part of the daemon's door that the gateway of the registries uses.
type Door interface {
	door.Packages
	// HostRefused is that of door.Hosts: for a connection to a registry that names another host, and for an answer
	// for which the run has no room.
	HostRefused(ctx context.Context, h door.HostRefusal) (door.Answer, error)
}

// New opens the cache and makes the clients. Nothing is sent yet.
func New(cfg Config, d Door) (*Gateway, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	store, err := cache.Open(cfg.CacheDir, cfg.Limits.Cache)
	if err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, door: d, log: cfg.Log, feed: newFeed(), guests: newGuestRates(cfg.Limits), flights: coalesce.New(cfg.Log)}
	if err := g.compose(store); err != nil {
		g.flights.Cancel()
		return nil, err
	}
	g.server = g.httpServer()
	return g, nil
}

// compose opens what is kept, makes the upstreams' clients, and joins the parts.
func (g *Gateway) compose(store *cache.Store) (err error) {
	cfg, limits := g.cfg, g.cfg.Limits
	g.pages, err = pages.New(pages.Config{
		Store: store, Flights: g.flights, Door: g.door, Log: g.log, Now: cfg.now, Unconfirmed: g.wrongPage,
		Fresh: limits.Fresh, Stale: limits.Stale, Memory: limits.PageMemory, Rendered: limits.RenderedMemory, Required: limits.RequiredMemory,
	})
	if err != nil {
		return err
	}
	g.artifacts = artifacts.New(artifacts.Config{Store: store, Flights: g.flights, Ahead: limits.FetchAhead, Log: g.log, Now: cfg.now})
	g.locator = &locator{pages: g.pages, artifacts: g.artifacts, now: cfg.now, log: g.log}
	if g.inspections, err = newInspections(cfg, store, g.flights, g.artifacts); err != nil {
		return err
	}
	if g.builds, err = newBuilds(cfg, store, g.flights, g.artifacts, g.door); err != nil {
		return err
	}
	if g.attachments, err = newAttachments(cfg, store, g.flights, g.artifacts); err != nil {
		return err
	}
	if g.relays, err = newRelays(cfg, store, g.flights); err != nil {
		return err
	}
	for _, u := range cfg.Upstreams {
		s, err := newSource(u, cfg, g.door, store, g.flights)
		if err != nil {
			return err
		}
		g.sources = append(g.sources, s)
	}
	g.names = newNames(cfg, g.door, g.sources, g.pages)
	g.walker = &walker{
		cfg: cfg, door: g.door, sources: g.sources, guests: g.guests, pages: g.pages,
		locator: g.locator, inspections: g.inspections, attachments: g.attachments, flights: g.flights,
	}
	g.proposals = newProposals(g.door, g.sources, g.guests, g.pages, g.inspections)
	return nil
}

// Start learns the file hosts, asks the door for a certificate for all names,
// and begins to serve. An upstream that can't be reached is tried again in the
// background; until then its kept file hosts are used.
func (g *Gateway) Start(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, g.cfg.Limits.LearnTime)
	missing := g.names.learnSources(soon, g.sources)
	cancel()
	if err := g.names.trustNames(ctx); err != nil {
		return err
	}
	g.flights.Run(func() {
		if err := g.server.Serve(g.feed); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, errFeedClosed) {
			g.log.Error("the registry server ended", "error", err)
		}
	})
	if len(missing) > 0 {
		g.flights.Run(func() { g.names.learnLater(g.flights.Life(), missing) })
	}
	return nil
}

// Names are the host names that the gateway answers for, sorted.
func (g *Gateway) Names() []string { return g.names.listNames() }

// IsRegistry reports whether the gateway answers for exactly this name.
func (g *Gateway) IsRegistry(name string) bool { return g.names.hasName(name) }

// Upstreams are the configured ones with the file hosts learnt so far, to be
// kept for the next start.
func (g *Gateway) Upstreams() []upstream.Config {
	var out []upstream.Config
	for _, s := range g.sources {
		out = append(out, s.Client.Config())
	}
	return out
}

// Propose looks up what an agent asks for before anything fails, and has the
// door judge and file it. The names count like those of installs, and each takes
// its turn in the guest's rate. The answer has one entry for each item, in their
// order.
func (g *Gateway) Propose(ctx context.Context, sandbox string, r channel.Request) ([]door.Proposed, error) {
	return g.proposals.lookUp(ctx, sandbox, r)
}

// Close ends all connections and fetches and waits for them.
func (g *Gateway) Close() error {
	g.flights.Cancel()
	err := g.server.Close()
	g.feed.Close() //nolint:errcheck // closing a feed can't fail
	g.flights.Wait()
	for _, s := range g.sources {
		s.closeSource()
	}
	return err
}
