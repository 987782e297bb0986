package gateway

import (
	"context"
	"net/netip"
	"net/url"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/logbook"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// source is one upstream with its protocol and client.
type source struct {
	pages.Source
	log *logbook.Book // its transparency log, if it has one that its protocol can read
	// builder is what the door names so of the run; "": nothing is built for it.
	builder string
}

// cacheKey names a file of a project, for ever.
func (s *source) cacheKey(project, file string) cache.Key {
	return cache.Key{Ecosystem: string(s.Ecosystem()), Upstream: s.Index, Project: project, File: file}
}

// wanted is a file of a project.
func (s *source) wanted(project string, f ecosystem.File) artifacts.Wanted {
	return artifacts.Wanted{
		Key: s.cacheKey(project, f.Name), URL: f.URL, Digest: f.Digest, Size: f.Size, File: f,
		Client: s.Client, Witness: s.witness(),
	}
}

// witness compares digests that are the log's own; nil if there is no log.
func (s *source) witness() ecosystem.Witness {
	if s.log == nil {
		return nil
	}
	return s.log.Witness()
}

// forRun is the source as a run meets it, which may have pages and builds of its own; see
// door.OwnerAnswer.
func (s *source) forRun(of door.OwnerAnswer) *source {
	if of.Apart == s.Apart && of.Builder == s.builder && slices.Equal(of.Makes, s.Makes) {
		return s
	}
	with := *s
	with.Apart, with.builder, with.Makes = of.Apart, of.Builder, of.Makes
	return &with
}

func newSource(u upstream.Config, cfg Config, d door.Packages, store *cache.Store, flights *coalesce.Group) (*source, error) {
	i := slices.IndexFunc(cfg.Protocols, func(p ecosystem.Protocol) bool { return p.Ecosystem() == u.Ecosystem })
	if i < 0 {
		return nil, fault.Invalid("no protocol for the upstream's ecosystem %q", u.Ecosystem)
	}
	if base, err := url.Parse(u.Index); err == nil {
		if _, err := netip.ParseAddr(base.Hostname()); err == nil {
			return nil, fault.Invalid("the upstream %s has an address and no name; sandboxes reach upstreams by name, so give it one", u.Index)
		}
	}
	options := upstream.Options{Version: cfg.Version, Resolver: cfg.Resolver, Dial: cfg.Dial, Limits: cfg.Limits.Upstream, Beside: cfg.Upstreams, Recorder: recorder{d}}
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
		Witness: witness, Upstream: u, Client: client, Options: options, Store: store, Flights: flights, Log: cfg.Log, Now: cfg.now,
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	s.Times = s.log.Times
	return s, nil
}

// recorder has the door put on record what is asked of upstreams.
type recorder struct{ door door.Packages }

// Asked implements upstream.Recorder.
func (r recorder) Asked(ctx context.Context, q upstream.Question) error {
	return r.door.Asking(ctx, door.Question{Sandbox: q.Sandbox, Package: q.Package, File: q.File, URL: q.URL})
}

func (s *source) closeSource() {
	s.Client.Close()
	s.log.Close()
}

// sources are those of all upstreams.
type sources []*source

// ownedSource is the source of an upstream.
func (ss sources) ownedSource(e pkgref.Ecosystem, index string) (*source, bool) {
	i := slices.IndexFunc(ss, func(s *source) bool { return policy.SameUpstream(s.Index, index) && s.Ecosystem() == e })
	if i < 0 {
		return nil, false
	}
	return ss[i], true
}

// sourcesOf are those that may be asked for a package: its name's own, or all of its
// ecosystem.
func (ss sources) sourcesOf(ctx context.Context, d door.Packages, ask door.OwnerAsk) (sources, error) {
	ref := ask.Package
	ask.Package.Version = ""
	owner, err := d.Owner(ctx, ask)
	if err != nil {
		return nil, err
	}
	var out sources
	for _, s := range ss {
		if s.Ecosystem() == ref.Ecosystem && (owner.Upstream == "" || policy.SameUpstream(s.Index, owner.Upstream)) {
			out = append(out, s.forRun(owner))
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.ErrForbidden, "its name belongs to no upstream that is configured here")
	}
	return out, nil
}
