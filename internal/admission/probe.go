package admission

import (
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Where names are paths, a resolver that looks for a.example/b/c asks for
// a.example/b and a.example too, since either could be the module that has it.
// Nobody wanted those. The log has them, and `cofferdam why` and a run's summary
// leave them out.

// wantedPaths are the projects that a run asked for, as prefixes to look up.
type wantedPaths map[pkgref.Ref]bool

// add takes a project: every path above it may be a probe.
func (w wantedPaths) add(p pkgref.Ref) {
	for i := len(p.Name) - 1; i > 0; i-- {
		if p.Name[i] == '/' {
			w[pkgref.Ref{Ecosystem: p.Ecosystem, Name: p.Name[:i]}] = true
		}
	}
}

// probed tells whether a project is only a path above one that was asked for.
func (w wantedPaths) probed(p pkgref.Ref) bool {
	return w[pkgref.Ref{Ecosystem: p.Ecosystem, Name: p.Name}]
}

// mayBeProbe tells whether a refusal was of something that resolvers read, and
// not of a file: a file that was refused was wanted, whatever its name.
func mayBeProbe(r audit.Record) bool {
	return r.Kind == audit.KindPackage && (r.File == "" || r.Detail[detailKind] == string(policy.KindMetadata))
}
