package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// names are the host names that the gateway answers for, with the certificate for them.
// Upstreams' file hosts are learnt from their pages.
type names struct {
	sources sources
	pages   *pages.Pages
	door    door.Packages
	probe   map[pkgref.Ecosystem][]string
	again   time.Duration // between two tries
	log     *slog.Logger

	table       atomic.Pointer[nameTable]
	certificate atomic.Pointer[tls.Certificate]
}

func newNames(cfg Config, d door.Packages, of sources, ps *pages.Pages) *names {
	n := &names{sources: of, pages: ps, door: d, probe: cfg.ProbeProjects, again: cfg.Limits.LearnAgain, log: cfg.Log}
	n.table.Store(newNameTable(of))
	return n
}

func (n *names) listNames() []string { return n.table.Load().listNames() }

// hasName reports whether the gateway answers for exactly this name.
func (n *names) hasName(name string) bool {
	_, ok := n.table.Load().places[name]
	return ok
}

// placesAt is what a name stands for.
func (n *names) placesAt(name string) []placed { return n.table.Load().places[name] }

// placed is a source and what a name stands for of it.
type placed struct {
	source *source
	place  ecosystem.Place
}

// DownloadsName is the name to which clients in sandboxes are pointed for what
// they would fetch from outside the registries: /KIND/... below it. It exists to
// say why not.
const DownloadsName = "downloads.cofferdam.internal"

// nameTable says what each name stands for. It is replaced, never changed.
type nameTable struct {
	places map[string][]placed
}

func newNameTable(of sources) *nameTable {
	t := &nameTable{places: map[string][]placed{DownloadsName: nil}} // which stands for no upstream
	for _, s := range of {
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

func (t *nameTable) listNames() []string { return slices.Sorted(maps.Keys(t.places)) }

// learnSources asks sources for their probe projects. It returns those that told nothing.
func (n *names) learnSources(ctx context.Context, of sources) (missing sources) {
	for _, s := range of {
		if err := n.learnHosts(ctx, s); err != nil {
			n.log.Warn("no file hosts learnt from the index", "index", s.Index, "error", err)
			missing = append(missing, s)
		}
	}
	n.table.Store(newNameTable(n.sources))
	return missing
}

// learnHosts takes the hosts of the files that the probe projects' pages list.
// A host that may not be one (see upstream.Client.Learn) is passed over.
func (n *names) learnHosts(ctx context.Context, s *source) error {
	ctx = fairqueue.For(ctx, upstream.Itself) // no sandbox has chosen the project
	hosts := map[string]bool{}
	var failed error
	for _, project := range n.probe[s.Ecosystem()] {
		p, err := n.pages.Page(ctx, s.Source, project)
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
		n.pages.Forget()
		return nil
	}
	return failed
}

// trustNames gets a certificate for the names.
func (n *names) trustNames(ctx context.Context) error {
	c, err := n.door.Trust(ctx, n.listNames())
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(c.ChainPEM, c.KeyPEM)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the certificate for the registry names can't be used")
	}
	n.certificate.Store(&pair)
	return nil
}

// learnLater tries the upstreams that could not be reached at the start again, until
// ctx ends.
func (n *names) learnLater(ctx context.Context, missing sources) {
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(n.again):
		}
		before := n.listNames()
		missing = n.learnSources(ctx, missing)
		if slices.Equal(before, n.listNames()) {
			continue
		}
		if err := n.trustNames(ctx); err != nil {
			n.log.Error("no certificate for the learnt file hosts", "error", err)
		}
	}
}
