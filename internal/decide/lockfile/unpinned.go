package lockfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Reasons for which an entry pins nothing, as they follow its name.
const (
	hasNoHash   = "has no hash"
	hasWeakHash = "has only a weak hash, which can be forged"
	// hasOddHash is of a hash that is too short, of an algorithm that is not known here, or none at all.
	hasOddHash   = "has a hash that can't be read"
	hasTwoHashes = "has two different hashes"
	hasNoVersion = "has no version that a registry could have"
	isOwn        = "is a directory of the project's own"
)

// Skipped is an entry of a lockfile that no client asks a registry for: it says nothing about any package.
type Skipped struct {
	Name   string // as it stands there
	Line   int
	Reason string // "is a runtime, which ..."
}

// unpinnable notes a package's entry that can be held to no file. Requests for that name alone are refused, but for the releases that other
// entries pin. version is "" where the entry has none that a registry could have. A resolver's answer must not have such
// an entry, unless it has no hash.
func (b *builder) unpinnable(line int, name, version, reason string) error {
	canonical, err := pkgref.CanonicalName(b.ecosystem, name)
	switch {
	case err != nil && b.resolved:
		return b.wrongLine(line, "%q, which %s, is not the name of a package", text.Shorten(name, maxQuoted), reason)
	case err != nil: // nobody can ask a registry for it
		b.skipEntry(line, fmt.Sprintf("%q", text.Shorten(name, maxQuoted)), "is no name that a registry has, and "+reason)
		return nil //nolint:nilerr // it was skipped for that
	}
	if b.resolved {
		return b.wrongLine(line, "%s %s", canonical, reason)
	}
	if v, err := pkgref.CanonicalVersion(b.ecosystem, version); err == nil {
		version = v
	} else {
		version = ""
	}
	return b.refuseName(canonical, policy.Unpinned{Version: version, Reason: reason, Lockfile: b.name, Line: line})
}

// refuseOwn refuses the name of a directory of the project's own: what a registry has under it is another package. No remark says so, since
// the project's clients don't ask for it.
func (b *builder) refuseOwn(line int, name string) error {
	canonical, err := pkgref.CanonicalName(b.ecosystem, name)
	if err != nil || b.resolved {
		return nil //nolint:nilerr // no registry has a package of that name
	}
	return b.refuseName(canonical, policy.Unpinned{Reason: isOwn, Lockfile: b.name, Line: line})
}

func (b *builder) refuseName(canonical string, u policy.Unpinned) error {
	if b.count++; b.count > maxPins {
		return b.wrongLine(u.Line, "the file has more than %d entries", maxPins)
	}
	b.unpinnables[canonical] = append(b.unpinnables[canonical], u)
	return nil
}

// skipEntry notes an entry that is no registry's.
func (b *builder) skipEntry(line int, name, reason string) {
	if len(b.skipped) < maxPins {
		b.skipped = append(b.skipped, Skipped{text.Shorten(name, maxQuoted), line, reason})
	}
}

// mostRemarked is how many entries a remark names.
const mostRemarked = 5

// Remarks say, a sentence each, which entries pin nothing and what follows from that; there are none if all do.
func (l *Lockfile) Remarks() (remarks []string) {
	var entries []Skipped
	for name, all := range l.Unpinned {
		for _, u := range all {
			if u.Reason != isOwn {
				entries = append(entries, Skipped{name, u.Line, u.Reason})
			}
		}
	}
	if len(entries) > 0 {
		remarks = append(remarks, fmt.Sprintf("%s pins nothing of %s; these names are refused", l.Name, listEntries(entries)))
	}
	if len(l.Skipped) > 0 {
		remarks = append(remarks, fmt.Sprintf("%s has entries that are of no registry, and are left out: %s", l.Name, listEntries(l.Skipped)))
	}
	return remarks
}

// listEntries names some entries, in the order of their lines.
func listEntries(entries []Skipped) string {
	slices.SortStableFunc(entries, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	var said []string
	for _, e := range entries[:min(len(entries), mostRemarked)] {
		said = append(said, fmt.Sprintf("%s (line %d %s)", e.Name, e.Line, e.Reason))
	}
	if more := len(entries) - mostRemarked; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, ", ")
}
