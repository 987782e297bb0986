package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// AreEntries tells whether the lines that a Decision suggests are entries of an allowlist and
// nothing else, so that SuggestWanted can add them.
func AreEntries(lines string) bool {
	_, ok := entriesOf(lines)
	return ok
}

// entriesOf reads the entries of lines that a Decision suggests; false: they say something else.
func entriesOf(lines string) (found []suggestion, ok bool) {
	p, err := Parse("lines", []byte(lines))
	if err != nil || len(p.packages.allowed) == 0 {
		return nil, false
	}
	if slices.ContainsFunc(p.explanations, func(e Explanation) bool { return e.Line > 0 && !strings.HasPrefix(e.Key, "allowed_packages") }) {
		return nil, false
	}
	for key, entries := range p.packages.allowed {
		for _, e := range entries {
			found = append(found, suggestion{
				ecosystem: key.ecosystem, name: key.name, limit: e.limitText, version: e.versionText, prereleases: e.prereleases,
				installScripts: e.installScripts, withDependencies: e.withDependencies, extras: e.extras,
			})
		}
	}
	slices.SortFunc(found, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(a.ecosystem, b.ecosystem), cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	return found, true
}

// isBeyond tells that no entry of the allowlist lets a package in, whatever its version.
func isBeyond(p *Policy, ref pkgref.Ref) bool {
	owner, _ := OwnerOf(p.namespaces, ref)
	j := p.Judge(time.Time{}, Subject{Package: ref, Upstream: owner})
	return j.always != nil || j.refusedName() != nil
}
