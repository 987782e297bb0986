package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// maxSpecifier bounds a requirement that becomes an entry's version, in bytes.
const maxSpecifier = 200

// Required are lines with an entry for each of some requirements of a project, which admits what the requirement names and
// nothing else: for a release that entries of the name leave out, or that is a pre-release. "": no requirement can be an entry's
// version. A requirement by which all later pre-releases would be let in is none: of Python's an exact one can be an entry, of Go's
// the version that it begins with. Entries come with what their releases require where those of the name all do.
func Required(p *Policy, project pkgref.Ref, specifiers []string) string {
	allowed := p.packages.allowed[packageKey{project.Ecosystem, project.Name}]
	with := !slices.ContainsFunc(allowed, func(e listEntry) bool { return !e.withDependencies })
	var b strings.Builder
	for _, specifier := range specifiers {
		version, prereleases, ok := versionsOf(project.Ecosystem, specifier)
		if !ok {
			continue
		}
		s := suggestion{ecosystem: project.Ecosystem, name: project.Name, version: version, withDependencies: with, prereleases: prereleases}
		if b.Len() == 0 {
			b.WriteString("allowed_packages:\n  " + string(project.Ecosystem) + ":\n")
		}
		b.WriteString(s.blockText(4))
	}
	return b.String()
}

// versionsOf is a requirement as an entry's version, and whether pre-releases are to be let in by it.
func versionsOf(ecosystem pkgref.Ecosystem, specifier string) (version string, prereleases, ok bool) {
	within, ok := pkgref.ParseRange(ecosystem, specifier)
	if !ok || strings.TrimSpace(specifier) == "" || len(specifier) > maxSpecifier {
		return "", false, false
	}
	if within.SelectsPreReleases() || !pkgref.MayTakePreReleases(ecosystem, specifier) {
		return specifier, false, true
	}
	least := strings.TrimLeft(specifier, "=> ")
	v, one := pkgref.ParseVersion(ecosystem, least)
	switch {
	case !one || !v.PreRelease():
		return "", false, false
	case strings.HasPrefix(specifier, "=="), within.Takes(v) && ecosystem.Traits().AsksVersions: // a requirement is one version there
		return "==" + v.String(), true, true
	}
	return "", false, false
}
