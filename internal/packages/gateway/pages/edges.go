package pages

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// TellEdges tells the door what the releases that a judged page shows require, if it
// wants to know, for clients that read it there, before they can read it.
func (ps *Pages) TellEdges(ctx context.Context, sandbox string, j Judged) error {
	lister, ok := j.source.Protocol.(ecosystem.Lister)
	if !ok || !j.answer.WantEdges {
		return nil
	}
	all, err := ps.requirements(ctx, j, lister)
	if err != nil {
		return err
	}
	return ps.cfg.Door.EdgesOfIndex(ctx, sandbox, j.Ref(), j.Digest, all.requirementsOf(j))
}

// requirements are what a page's releases require: from memory, the disk, or the
// page's rows, once however many want them.
func (ps *Pages) requirements(ctx context.Context, j Judged, lister ecosystem.Lister) (*requirements, error) {
	what := requiredKey{pageKey(j.source, j.project), j.Page.source, j.known, len(j.Index.Files)}
	return ps.required.Get(ctx, what, func(ctx context.Context) (*requirements, error) {
		return ps.listRequirements(ctx, lister, j.Page)
	})
}

// listRequirements reads them from the rows.
func (ps *Pages) listRequirements(ctx context.Context, lister ecosystem.Lister, p *Page) (*requirements, error) {
	free, err := takeSlot(ctx, ps.heavy, max(p.size, p.stored.Size()))
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
	at := map[door.Requirement]int{}
	for i, f := range p.Index.Files {
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
			required := door.Requirement{Name: r.Name, Specifier: r.Specifier, Optional: r.Optional}
			place, known := at[required]
			if !known {
				place = len(all.list)
				at[required] = place
				all.list, all.files = append(all.list, required), append(all.files, nil)
			}
			all.files[place] = append(all.files[place], int32(i)) // at most ecosystem.MaxFiles
		}
	}
	for i := range all.files {
		all.files[i] = slices.Clip(all.files[i])
	}
	return all, nil
}

// requirementsOf gives the requirements of the files that a judged page shows.
func (r *requirements) requirementsOf(j Judged) []door.IndexRequirement {
	most := 0
	for _, files := range r.files {
		most += len(files)
	}
	versions := make([]string, 0, most)
	out := make([]door.IndexRequirement, 0, len(r.list))
	for i, required := range r.list {
		begin := len(versions)
		for _, file := range r.files[i] {
			version := j.Index.Files[file].Version
			if !j.showsFile(int(file)) || len(versions) > begin && versions[len(versions)-1] == version {
				continue
			}
			versions = append(versions, version)
		}
		if len(versions) > begin {
			out = append(out, door.IndexRequirement{Name: required.Name, Specifier: required.Specifier, Versions: versions[begin:len(versions):len(versions)], Optional: required.Optional})
		}
	}
	return out
}
