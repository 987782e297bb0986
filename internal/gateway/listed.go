package gateway

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// listEdges tells the door what the allowed releases of a page require, for
// clients that read it there, before they can read it.
func (g *Gateway) listEdges(ctx context.Context, q *query, p *page, a admission.IndexAnswer) error {
	lister, ok := q.source.protocol.(ecosystem.Lister)
	if !ok || !a.WantEdges {
		return nil
	}
	free, err := slot(ctx, g.heavy, max(p.size, p.stored.Size()))
	if err != nil {
		return err
	}
	defer free()
	reqs, err := listed(lister, p, a)
	if err != nil {
		return err
	}
	return g.door.EdgesOfIndex(ctx, q.sandbox, pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project}, p.digest, reqs)
}

// listed collects the requirements; those that releases have in common are one.
func listed(lister ecosystem.Lister, p *page, a admission.IndexAnswer) ([]admission.IndexRequirement, error) {
	rows, err := p.openRows()
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // read only
	reqs := []admission.IndexRequirement{}
	at := map[admission.Requirement]int{}
	for i, f := range p.index.Files {
		if !a.Verdicts[a.OfFile[i]].Allowed() {
			continue
		}
		row, err := ecosystem.Slice(rows, f.Manifest)
		if err != nil {
			return nil, err
		}
		of, err := lister.Listed(f, row)
		if err != nil {
			return nil, err
		}
		for _, r := range of {
			if r.Direct {
				continue // Inspect's to refuse
			}
			key := admission.Requirement{Name: r.Name, Specifier: r.Specifier}
			place, known := at[key]
			if !known {
				place = len(reqs)
				at[key] = place
				reqs = append(reqs, admission.IndexRequirement{Name: r.Name, Specifier: r.Specifier})
			}
			versions := &reqs[place].Versions
			if n := len(*versions); n == 0 || (*versions)[n-1] != f.Version {
				*versions = append(*versions, f.Version)
			}
		}
	}
	return reqs, nil
}
