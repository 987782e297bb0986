package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// evidence gathers what the gateway knows about a file's release, for the
// person who answers. It is best effort: what can't be had is left out, since
// nothing is decided by it. p is its project's page, or nil.
func (is *inspections) evidence(ctx context.Context, s *source, p *pages.Page, project string, f ecosystem.File, row []byte) evidence.Evidence {
	e := evidence.Evidence{Published: f.Published, FirstSeen: f.FirstSeen}
	if p != nil {
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
	if v, _, err := is.artifacts.Cached(s.wanted(project, f)); err == nil {
		if d, ok := s.Protocol.(ecosystem.Describer); ok {
			sidecar, _ = d.Sidecar(f, v) // without it less is told
		}
		_ = v.Close() // read only
	} else if f.Sidecar != "" {
		sidecar, _ = is.offeredSidecar(ctx, s, project, f) // as above
	}
	said := presenter.Present(f, row, sidecar)
	e.Summary, e.Maintainer, e.Homepage, e.License = said.Summary, said.Maintainer, said.Homepage, said.License
	e.Requires, e.Scripts = said.Requires, said.Scripts
	return e
}

// WithInside adds to what an index told of a release what was found in its file, and what the publisher says
// there. Of the licence the file says more: its text is there, too. in and said may be nil.
func WithInside(e evidence.Evidence, scripts, findings []string, in *ecosystem.Inside, said *ecosystem.Publication) evidence.Evidence {
	if said != nil {
		e.Summary, e.Maintainer, e.Homepage = cmp.Or(e.Summary, said.Summary), cmp.Or(e.Maintainer, said.Maintainer), cmp.Or(e.Homepage, said.Homepage)
		e.License = cmp.Or(said.License, e.License)
		if len(e.Requires) == 0 {
			e.Requires = said.Requires
		}
		if len(e.Scripts) == 0 {
			e.Scripts = said.Scripts
		}
	}
	e.Scripts, e.Findings = withFound(e.Scripts, scripts), findings
	if in != nil {
		e.Inside = &evidence.Inside{
			Modules: in.Modules, EntryPoints: in.EntryPoints, Starts: in.Starts, Native: in.Native, Files: in.Files,
			Builds: in.Builds, Suspect: in.Suspect, Sources: in.Sources, Read: in.Read,
		}
	}
	return e
}

// withFound adds what was found to run in a file to what the index lists, by name.
func withFound(listed, found []string) []string {
	for _, name := range found {
		if !slices.ContainsFunc(listed, func(script string) bool { return script == name || strings.HasPrefix(script, name+":") }) {
			listed = append(listed, name)
		}
	}
	return listed
}
