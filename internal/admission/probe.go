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
// not of a file: a file that was refused was wanted, whatever its name. Metadata
// that could not be verified is told in any case.
func mayBeProbe(r audit.Record) bool {
	metadata := r.Detail[detailKind] == string(policy.KindMetadata)
	return r.Kind == audit.KindPackage && (r.File == "" || metadata && (r.Outcome != audit.Failed || r.OfUpstream()))
}

// isProbe tells of what only a resolver asked for: by a path above what was wanted, or, of
// what no upstream gave, by one below what was had.
func isProbe(r audit.Record, wanted wantedPaths, had had) bool {
	p := projectOf(r)
	return mayBeProbe(r) && (wanted.probed(p) || r.OfUpstream() && had.above(p))
}
