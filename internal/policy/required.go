package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// maxSpecifier bounds a requirement that becomes an entry's version, in bytes.
const maxSpecifier = 200

// Required are lines with an entry for each of some requirements of a project, which admits what the requirement names and
// nothing else: for a release that entries of the name leave out, or that is a pre-release. "": no requirement can be an entry's
// version. Entries come with what their releases require where those of the name all do.
func Required(p *Policy, project pkgref.Ref, specifiers []string) string {
	allowed := p.packages.allowed[packageKey{project.Ecosystem, project.Name}]
	with := !slices.ContainsFunc(allowed, func(e entry) bool { return !e.withDependencies })
	var b strings.Builder
	for _, specifier := range specifiers {
		within, ok := pkgref.ParseRange(project.Ecosystem, specifier)
		if !ok || strings.TrimSpace(specifier) == "" || len(specifier) > maxSpecifier {
			continue
		}
		s := suggestion{
			ecosystem: project.Ecosystem, name: project.Name, version: specifier, withDependencies: with,
			prereleases: !within.SelectsPreReleases() && pkgref.MayTakePreReleases(project.Ecosystem, specifier),
		}
		if b.Len() == 0 {
			b.WriteString("allowed_packages:\n  " + string(project.Ecosystem) + ":\n")
		}
		b.WriteString(s.block(4))
	}
	return b.String()
}
