// Package gateway is the registry server: the one thing that a sandbox can
// talk to, and with package upstream the one thing that talks to the world.
// For each request it finds the caller and the protocol, asks the door, takes
// the bytes from the cache or fetches and verifies them whole, has the serving
// recorded, and only then sends.
//
// Vocabulary: a *source* is one upstream with its protocol and client; a
// *guest* is a sandbox as the gateway sees it, an identity that came with the
// connection; a *page* is an index page, read; an *artifact* is a file's
// verified bytes; an *attachment* is what resolvers read of releases that they
// may never install; a *logbook* is an upstream's transparency log and what is
// known of it; a *side download* is what tools fetch from outside the registries;
// a *name* is a host name that the gateway answers for.
//
// The life of a request is in docs/ecosystems.md; what each client shows of a
// refusal, too. Nothing that one guest does can be read by another: there is
// no negative cache, no listing and no counter.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/clock"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/all"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/kept"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/turns"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// Config of a gateway. Zero fields but CacheDir and Upstreams take the default.
type Config struct {
	CacheDir  string
	Upstreams []upstream.Config
	// Protocols that are spoken; default: all.
	Protocols []ecosystem.Protocol
	// ProbeProjects are asked for at the start, to learn the file hosts from
	// their pages; default: pip for Python.
	ProbeProjects map[pkgref.Ecosystem][]string
	Version       string
	Resolver      upstream.Resolver // default: the system's
	Limits        Limits
	Log           *slog.Logger // for the operator; default: none
	// Clock is when files are first seen; default: the host's, which is believed. After a
	// jump of that a file counts as seen at the later of the two times.
	Clock clock.Source
}

// Gateway serves registries to sandboxes. Make one with New, Start it, hand it
// connections with ServeRegistry, Close it.
type Gateway struct {
	cfg   Config
	door  door.Door
	pages *pages.Pages
	// proposals has a lock of its own.
	proposals proposals
	store     *cache.Store
	sources   []*source
	log       *slog.Logger

	names       atomic.Pointer[nameTable]
	certificate atomic.Pointer[tls.Certificate]
	server      *http.Server
	feed        *feed
	flights     *flight.Group // ends with Close
	described   *kept.Memory[inspectionKey, described]
	inspections *kept.Findings[inspectionKey, described]
	attachments *kept.Disk[attachmentKey, keptAttachment] // those that may change
	relays      *kept.Disk[relayKey, []byte]              // what clients verify themselves and never changes
	guests      *guests
	ahead       *turns.Shares // for fetching ahead
}

// New opens the cache and makes the clients. Nothing is sent yet.
func New(cfg Config, d door.Door) (*Gateway, error) {
	if len(cfg.Upstreams) == 0 {
		return nil, fault.Invalid("no upstream registry is known; set one under upstreams: in the configuration")
	}
	if cfg.Protocols == nil {
		cfg.Protocols = all.Protocols()
	}
	if cfg.ProbeProjects == nil {
		cfg.ProbeProjects = map[pkgref.Ecosystem][]string{pkgref.Python: {"pip"}}
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Plain(time.Now)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits = cfg.Limits.withDefaults()
	store, err := cache.Open(cfg.CacheDir, cfg.Limits.Cache)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg: cfg, door: d, store: store, log: cfg.Log,
		feed:      newFeed(),
		described: kept.NewMemory[inspectionKey, described](8 << 20),
		guests:    newGuests(cfg.Limits),
		flights:   flight.New(cfg.Log),
		ahead:     turns.New(turns.Limits{All: cfg.Limits.FetchAhead, Each: cfg.Limits.FetchAhead, Sure: 1, Most: 16 * cfg.Limits.FetchAhead}),
	}
	if err := g.open(); err != nil {
		g.flights.Cancel()
		return nil, err
	}
	g.names.Store(newNameTable(g.sources))
	g.server = g.httpServer()
	return g, nil
}

// open opens what is kept, and makes the upstreams' clients.
func (g *Gateway) open() error {
	var errs [4]error
	var found *kept.Disk[inspectionKey, described]
	found, errs[0] = kept.NewDisk(g.store, "inspections", maxInspections, kept.JSON[inspectionKey, described](), g.log, "an inspection")
	g.attachments, errs[1] = kept.NewDisk(g.store, "attachments", maxAttachments, kept.JSON[attachmentKey, keptAttachment](), g.log, "an attachment")
	g.relays, errs[2] = kept.NewDisk(g.store, "relays", maxRelays, kept.Bytes[relayKey](), g.log, "a relayed answer")
	l := g.cfg.Limits
	g.pages, errs[3] = pages.New(pages.Config{
		Store: g.store, Flights: g.flights, Door: g.door, Log: g.log, Now: g.seen,
		Fresh: l.Fresh, Stale: l.Stale, Memory: l.PageMemory, Rendered: l.RenderedMemory, Required: l.RequiredMemory,
	})
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	g.inspections = kept.NewFindings(g.described, found, g.flights, func(_ inspectionKey, d described) int64 { return d.size() })
	for _, u := range g.cfg.Upstreams {
		s, err := g.newSource(u)
		if err != nil {
			return err
		}
		g.sources = append(g.sources, s)
	}
	return nil
}

// seen is when something that is seen now was first seen: not before that, whichever
// time is right after a jump of the host's clock.
func (g *Gateway) seen() time.Time { return g.cfg.Clock.Read().Latest().UTC() }

// Start learns the file hosts, asks the door for a certificate for all names,
// and begins to serve. An upstream that can't be reached is tried again in the
// background; until then its kept file hosts are used.
func (g *Gateway) Start(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, g.cfg.Limits.LearnTime)
	missing := g.learn(soon)
	cancel()
	if err := g.trust(ctx); err != nil {
		return err
	}
	g.flights.Run(func() {
		if err := g.server.Serve(g.feed); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, errFeedClosed) {
			g.log.Error("the registry server ended", "error", err)
		}
	})
	if len(missing) > 0 {
		g.flights.Run(func() { g.learnLater(missing) })
	}
	return nil
}

// Names are the host names that the gateway answers for, sorted.
func (g *Gateway) Names() []string { return g.names.Load().list() }

// IsRegistry reports whether the gateway answers for exactly this name.
func (g *Gateway) IsRegistry(name string) bool {
	_, ok := g.names.Load().places[name]
	return ok
}

// Upstreams are the configured ones with the file hosts learnt so far, to be
// kept for the next start.
func (g *Gateway) Upstreams() []upstream.Config {
	var out []upstream.Config
	for _, s := range g.sources {
		out = append(out, s.Client.Config())
	}
	return out
}

// Close ends all connections and fetches and waits for them.
func (g *Gateway) Close() error {
	g.flights.Cancel()
	err := g.server.Close()
	g.feed.Close() //nolint:errcheck // closing a feed can't fail
	g.flights.Wait()
	for _, s := range g.sources {
		s.close()
	}
	return err
}

// trust gets a certificate for the names.
func (g *Gateway) trust(ctx context.Context) error {
	c, err := g.door.Trust(ctx, g.Names())
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(c.ChainPEM, c.KeyPEM)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the certificate for the registry names can't be used")
	}
	g.certificate.Store(&pair)
	return nil
}

// learnLater tries the upstreams that could not be reached at the start again.
func (g *Gateway) learnLater(missing []*source) {
	for len(missing) > 0 {
		select {
		case <-g.flights.Life().Done():
			return
		case <-time.After(g.cfg.Limits.LearnAgain):
		}
		before := g.Names()
		missing = g.learnFrom(g.flights.Life(), missing)
		if slices.Equal(before, g.Names()) {
			continue
		}
		if err := g.trust(g.flights.Life()); err != nil {
			g.log.Error("no certificate for the learnt file hosts", "error", err)
		}
	}
}
