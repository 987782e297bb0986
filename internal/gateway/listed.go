package gateway

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// requirements are what the releases of a page require. Reading them takes a
// while, and each run asks for them, so they are kept in memory.
type requirements struct {
	list  []admission.Requirement
	files [][]int32 // by requirement: the files that have it, in the index's order
}

// listEdges tells the door what the allowed releases of a page require, for
// clients that read it there, before they can read it.
func (g *Gateway) listEdges(ctx context.Context, q *query, p *page, a admission.IndexAnswer) error {
	lister, ok := q.source.protocol.(ecosystem.Lister)
	if !ok || !a.WantEdges {
		return nil
	}
	key := pageKey(q.source, q.route.Project) + " " + p.digest
	all, ok := g.required.get(key)
	if !ok {
		var err error
		all, err = flight(ctx, g, "required "+key, func() (*requirements, error) { return g.readRequirements(key, lister, p) })
		if err != nil {
			return err
		}
	}
	return g.door.EdgesOfIndex(ctx, q.sandbox, pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project}, p.digest, all.of(p.index, a))
}

// readRequirements reads them from the rows, once however many want them.
func (g *Gateway) readRequirements(key string, lister ecosystem.Lister, p *page) (*requirements, error) {
	free, err := slot(g.life, g.heavy, max(p.size, p.stored.Size()))
	if err != nil {
		return nil, err
	}
	defer free()
	rows, err := p.openRows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := &requirements{}
	at := map[admission.Requirement]int{}
	size := int64(len(key) + 500)
	for i, f := range p.index.Files {
		row, err := ecosystem.Slice(rows, f.Manifest)
		if err != nil {
			return nil, err
		}
		listed, err := lister.Listed(f, row)
		if err != nil {
			return nil, err
		}
		for _, r := range listed {
			if r.Direct {
				continue // Inspect's to refuse
			}
			size += 4
			required := admission.Requirement{Name: r.Name, Specifier: r.Specifier}
			place, known := at[required]
			if !known {
				place = len(all.list)
				at[required] = place
				all.list, all.files = append(all.list, required), append(all.files, nil)
				size += int64(len(r.Name)+len(r.Specifier)) + 100
			}
			all.files[place] = append(all.files[place], int32(i)) // at most ecosystem.MaxFiles
		}
	}
	for i := range all.files {
		all.files[i] = slices.Clip(all.files[i])
	}
	g.required.put(key, all, size)
	return all, nil
}

// of gives the requirements of the files that an answer allows.
func (r *requirements) of(ix *ecosystem.Index, a admission.IndexAnswer) []admission.IndexRequirement {
	most := 0
	for _, files := range r.files {
		most += len(files)
	}
	versions := make([]string, 0, most)
	out := make([]admission.IndexRequirement, 0, len(r.list))
	for i, required := range r.list {
		begin := len(versions)
		for _, file := range r.files[i] {
			version := ix.Files[file].Version
			if !a.Verdicts[a.OfFile[file]].Allowed() || len(versions) > begin && versions[len(versions)-1] == version {
				continue
			}
			versions = append(versions, version)
		}
		if len(versions) > begin {
			out = append(out, admission.IndexRequirement{Name: required.Name, Specifier: required.Specifier, Versions: versions[begin:len(versions):len(versions)]})
		}
	}
	return out
}
