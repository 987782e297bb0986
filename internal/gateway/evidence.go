package gateway

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/evidence"
)

// evidenceOf gathers what the gateway knows about a file's release, for the
// person who answers. It is best effort: what can't be had is left out, since
// nothing is decided by it.
func (g *Gateway) evidenceOf(ctx context.Context, s *source, project string, f ecosystem.File, row []byte) evidence.Evidence {
	e := evidence.Evidence{Published: f.Published, FirstSeen: f.FirstSeen}
	if p := g.pages.Have(ctx, s.Source, project); p != nil {
		seen := map[string]bool{}
		for _, other := range p.Index.Files {
			seen[other.Version] = true
		}
		e.Versions = len(seen)
	}
	presenter, ok := s.Protocol.(ecosystem.Presenter)
	if !ok {
		return e
	}
	var sidecar []byte
	if v, _, err := g.cached(wantFile(s, project, f)); err == nil {
		if d, ok := s.Protocol.(ecosystem.Describer); ok {
			sidecar, _ = d.Sidecar(f, v) // without it less is told
		}
		_ = v.Close() // read only
	} else if f.Sidecar != "" {
		sidecar, _ = g.offeredSidecar(ctx, s, project, f) // as above
	}
	said := presenter.Present(f, row, sidecar)
	e.Summary, e.Maintainer, e.Homepage, e.License = said.Summary, said.Maintainer, said.Homepage, said.License
	e.Requires, e.Scripts = said.Requires, said.Scripts
	return e
}

// evidence is evidenceOf for a file that a guest asks for and that waits.
func (a *asked) evidence(ctx context.Context, g *Gateway) *evidence.Evidence {
	e := g.evidenceOf(ctx, a.source, a.route.Project, a.file, a.row)
	e.Scripts = withFound(e.Scripts, a.found.Scripts)
	e.Findings = a.found.Findings
	if in := a.found.Inside; in != nil {
		e.Inside = &evidence.Inside{Modules: in.Modules, EntryPoints: in.EntryPoints, Starts: in.Starts, Native: in.Native, Files: in.Files}
	}
	return &e
}

// withFound adds what was found to run in a file to what the index tells, by name.
func withFound(told, found []string) []string {
	for _, name := range found {
		if !slices.ContainsFunc(told, func(script string) bool { return script == name || strings.HasPrefix(script, name+":") }) {
			told = append(told, name)
		}
	}
	return told
}
