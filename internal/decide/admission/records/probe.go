package records

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Where names are paths, a resolver that looks for a.example/b/c asks for
// a.example/b and a.example too, since either could be the module that has it.
// Nobody wanted those. The log has them, and `cofferdam why` and a run's summary
// leave them out.

// Paths are the projects that a run asked for, as prefixes to look up.
type Paths map[pkgref.Ref]bool

// Add takes a project: every path above it may be a probe.
func (w Paths) Add(p pkgref.Ref) {
	for i := len(p.Name) - 1; i > 0; i-- {
		if p.Name[i] == '/' {
			w[pkgref.Ref{Ecosystem: p.Ecosystem, Name: p.Name[:i]}] = true
		}
	}
}

// Probed tells whether a project is only a path above one that was asked for.
func (w Paths) Probed(p pkgref.Ref) bool {
	return w[pkgref.Ref{Ecosystem: p.Ecosystem, Name: p.Name}]
}

// MayBeProbe tells whether a refusal was of something that resolvers read, and
// not of a file: a file that was refused was wanted, whatever its name. Metadata
// that could not be verified is told in any case.
func MayBeProbe(r audit.Record) bool {
	metadata := r.Detail[DetailKind] == string(policy.KindMetadata)
	return r.Kind == audit.KindPackage && (r.File == "" || metadata && (r.Outcome != audit.Failed || r.OfUpstream()))
}

// IsProbe tells of what only a resolver asked for: by a path above what was wanted, or, of
// what no upstream gave, by one below what was had.
func IsProbe(r audit.Record, wanted Paths, had Had) bool {
	p := ProjectOf(r)
	return MayBeProbe(r) && (wanted.Probed(p) || r.OfUpstream() && had.Above(p))
}
