package gateway

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// find says what the file is that a route names: by the project's index, or by
// its address where the protocol has such. Where a transparency log vouches for
// files the index is not even asked for. Without an error the caller settles the
// asking once it knows whether the file may be had: that a name exists makes it
// no less of a stranger, since anybody can make names that exist.
func (g *Gateway) find(q *query) (*asked, error) {
	settle, err := g.guests.ask(q.sandbox, q.ref("").String(), q.admitted, q.r.Context().Done())
	if err != nil {
		return nil, err
	}
	a := &asked{query: q, settle: settle}
	ctx := q.r.Context()
	addresser, addressed := q.source.Protocol.(ecosystem.Addresser)
	_, witnessed := q.source.Protocol.(ecosystem.Witness)
	if addressed && witnessed {
		err = g.address(ctx, a, addresser)
	} else if err = g.list(ctx, a); addressed && (errors.Is(err, fault.ErrNotFound) || errors.Is(err, fault.ErrUnavailable)) {
		err = g.address(ctx, a, addresser)
	}
	if err != nil {
		settle(stranger)
		return nil, err
	}
	a.ref, a.url = q.ref(a.file.Version), a.file.URL
	return a, nil
}

// list finds the file in its project's page by its path.
func (g *Gateway) list(ctx context.Context, a *asked) error {
	p, err := g.pages.Page(ctx, a.source.Source, a.route.Project)
	if err != nil {
		return err
	}
	if f, ok := p.At(a.route.Path); ok {
		a.file = f
		if _, ok := a.source.Protocol.(ecosystem.Inspector); ok {
			a.row, err = p.Row(a.file.Manifest)
		}
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "what the index says of the file can't be read")
		}
		return nil
	}
	for _, l := range p.Index.LeftOut {
		if l.Name == a.route.File || (l.Path != "" && l.Path == a.route.Path) {
			return fault.Invalid("%s can't be served: %s", a.route.File, l.Reason)
		}
	}
	if _, ok := a.source.Protocol.(ecosystem.Addresser); ok {
		return fault.New(fault.ErrNotFound, "%s", sentence(notListed(a.route)))
	}
	return notListed(a.route)
}

// address takes the file for what its address says. Its digest and its time are
// the log's; without one the first bytes count, since they were first seen.
func (g *Gateway) address(ctx context.Context, a *asked, addresser ecosystem.Addresser) error {
	f, err := g.addressed(ctx, a.source, addresser, a.route)
	if err == nil {
		a.file = f
	}
	return err
}

// addressed is the file of the release that a route names, by its address.
func (g *Gateway) addressed(ctx context.Context, s *source, addresser ecosystem.Addresser, r ecosystem.Route) (ecosystem.File, error) {
	f, err := addresser.Addressed(s.Index, r)
	if err != nil {
		return f, err
	}
	if !s.Client.Permits(f.URL) {
		return f, fault.Invalid("%s is on a host that is not known as a file host of the upstream", r.File)
	}
	f.FirstSeen = g.seen()
	if s.log != nil {
		said, err := s.log.Vouched(ctx, r.Project, f.Version)
		if err != nil {
			return f, err
		}
		if said.File == "" {
			return f, fault.Invalid("the upstream's transparency log has no digest of %s", r.File)
		}
		f.Digest, f.Published, f.FirstSeen = said.File, s.log.TimeOf(said.Position), said.First
	}
	b, bound, err := g.store.Binding(fileKey(s, r.Project, f.Name))
	if err != nil {
		return f, err
	}
	if bound && b.First.Before(f.FirstSeen) {
		f.FirstSeen = b.First
	}
	return f, nil
}
