package gateway

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// listEdges tells the door what the allowed releases of a page require, for
// clients that read it there, before they can read it.
func (g *Gateway) listEdges(ctx context.Context, q *query, p *page, a door.IndexAnswer) error {
	lister, ok := q.source.protocol.(ecosystem.Lister)
	if !ok || !a.WantEdges {
		return nil
	}
	all, err := g.requirements(ctx, q.source, q.route.Project, lister, p)
	if err != nil {
		return err
	}
	return g.door.EdgesOfIndex(ctx, q.sandbox, pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project}, p.digest, all.of(p.index, a))
}
