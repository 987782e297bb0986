package gateway

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"net/url"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// source is one upstream with its protocol.
type source struct {
	protocol ecosystem.Protocol
	client   *upstream.Client
	index    string   // the index's URL, also the upstream's identity in cache keys
	log      *logbook // its transparency log, if it has one that its protocol can read
	apart    string   // with whom its pages are shared; "" is with all who may have them
}

// keptApart is the source with pages of its own, see admission.OwnerAnswer.
func (s *source) keptApart(from string) *source {
	if from == s.apart {
		return s
	}
	with := *s
	with.apart = from
	return &with
}

func newSource(u upstream.Config, cfg Config, store *cache.Store) (*source, error) {
	i := slices.IndexFunc(cfg.Protocols, func(p ecosystem.Protocol) bool { return p.Ecosystem() == u.Ecosystem })
	if i < 0 {
		return nil, fault.Invalid("no protocol for the upstream's ecosystem %q", u.Ecosystem)
	}
	if base, err := url.Parse(u.Index); err == nil {
		if _, err := netip.ParseAddr(base.Hostname()); err == nil {
			return nil, fault.Invalid("the upstream %s has an address and no name; sandboxes reach upstreams by name, so give it one", u.Index)
		}
	}
	client, err := upstream.New(u, upstream.Options{Version: cfg.Version, Resolver: cfg.Resolver, Limits: cfg.Limits.Upstream})
	if err != nil {
		return nil, err
	}
	s := &source{protocol: cfg.Protocols[i], client: client, index: u.Index}
	if s.log, err = newLogbook(s, u, cfg, store); err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) close() {
	s.client.Close()
	s.log.close()
}

// toolchain tells whether a project is one that tools fetch by themselves.
func (s *source) toolchain(project string) bool {
	n, ok := s.protocol.(ecosystem.ToolchainNamer)
	return ok && n.Toolchain(project)
}

func (s *source) ecosystem() pkgref.Ecosystem { return s.protocol.Ecosystem() }

// placed is a source and what a name stands for of it.
type placed struct {
	source *source
	place  ecosystem.Place
}

// nameTable says what each name stands for. It is replaced, never changed.
type nameTable struct {
	places map[string][]placed
}

func newNameTable(sources []*source) *nameTable {
	t := &nameTable{places: map[string][]placed{DownloadsName: nil}} // which stands for no upstream
	for _, s := range sources {
		base, err := url.Parse(s.index)
		if err != nil {
			continue // not reached: upstream.New read it
		}
		t.places[base.Hostname()] = append(t.places[base.Hostname()], placed{s, ecosystem.Place{Base: base.EscapedPath(), Files: true}})
		for _, host := range s.client.FileHosts() {
			u := url.URL{Host: host}
			if u.Hostname() == base.Hostname() {
				continue
			}
			t.places[u.Hostname()] = append(t.places[u.Hostname()], placed{s, ecosystem.Place{Files: true}})
		}
	}
	return t
}

func (t *nameTable) list() []string { return slices.Sorted(maps.Keys(t.places)) }

// learn asks every upstream for its probe projects. It returns the sources
// that told nothing.
func (g *Gateway) learn(ctx context.Context) []*source { return g.learnFrom(ctx, g.sources) }

func (g *Gateway) learnFrom(ctx context.Context, sources []*source) (missing []*source) {
	for _, s := range sources {
		if err := g.learnHosts(ctx, s); err != nil {
			g.log.Warn("no file hosts learnt from the index", "index", s.index, "error", err)
			missing = append(missing, s)
		}
	}
	g.names.Store(newNameTable(g.sources))
	return missing
}

// learnHosts takes the hosts of the files that the probe projects' pages list.
// A host that may not be one (see upstream.Client.Learn) is passed over.
func (g *Gateway) learnHosts(ctx context.Context, s *source) error {
	hosts := map[string]bool{}
	var failed error
	for _, project := range g.cfg.ProbeProjects[s.ecosystem()] {
		p, err := g.page(ctx, s, project)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for host := range p.hosts {
			hosts[host] = true
		}
	}
	learnt := false
	for host := range hosts {
		if err := s.client.Learn(ctx, host); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		learnt = true
	}
	if learnt {
		g.pages.clear() // what was left out for its host may be listed now
		return nil
	}
	return failed
}
