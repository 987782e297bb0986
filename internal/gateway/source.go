package gateway

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"net/url"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/logbook"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// source is one upstream with its protocol.
type source struct {
	pages.Source
	log *logbook.Book // its transparency log, if it has one that its protocol can read
}

// keptApart is the source with pages of its own, see admission.OwnerAnswer.
func (s *source) keptApart(from string) *source {
	if from == s.Apart {
		return s
	}
	with := *s
	with.Apart = from
	return &with
}

func (g *Gateway) newSource(u upstream.Config) (*source, error) {
	cfg := g.cfg
	i := slices.IndexFunc(cfg.Protocols, func(p ecosystem.Protocol) bool { return p.Ecosystem() == u.Ecosystem })
	if i < 0 {
		return nil, fault.Invalid("no protocol for the upstream's ecosystem %q", u.Ecosystem)
	}
	if base, err := url.Parse(u.Index); err == nil {
		if _, err := netip.ParseAddr(base.Hostname()); err == nil {
			return nil, fault.Invalid("the upstream %s has an address and no name; sandboxes reach upstreams by name, so give it one", u.Index)
		}
	}
	options := upstream.Options{Version: cfg.Version, Resolver: cfg.Resolver, Limits: cfg.Limits.Upstream}
	client, err := upstream.New(u, options)
	if err != nil {
		return nil, err
	}
	s := &source{Source: pages.Source{Protocol: cfg.Protocols[i], Client: client, Index: u.Index}}
	witness, ok := s.Protocol.(ecosystem.Witness)
	if !ok || u.Log == "" {
		return s, nil
	}
	s.log, err = logbook.New(logbook.Config{
		Witness: witness, Upstream: u, Client: client, Options: options, Store: g.store, Flights: g.flights, Log: g.log, Now: g.seen,
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	s.Times = s.log.Times
	return s, nil
}

func (s *source) close() {
	s.Client.Close()
	s.log.Close()
}

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
		base, err := url.Parse(s.Index)
		if err != nil {
			continue // not reached: upstream.New read it
		}
		t.places[base.Hostname()] = append(t.places[base.Hostname()], placed{s, ecosystem.Place{Base: base.EscapedPath(), Files: true}})
		for _, host := range s.Client.FileHosts() {
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
			g.log.Warn("no file hosts learnt from the index", "index", s.Index, "error", err)
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
	for _, project := range g.cfg.ProbeProjects[s.Ecosystem()] {
		p, err := g.pages.Page(ctx, s.Source, project)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for host := range p.Hosts {
			hosts[host] = true
		}
	}
	learnt := false
	for host := range hosts {
		if err := s.Client.Learn(ctx, host); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		learnt = true
	}
	if learnt {
		g.pages.Forget()
		return nil
	}
	return failed
}
