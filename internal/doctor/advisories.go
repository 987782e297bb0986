package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// advisories tells whether the imported facts about packages can be read:
// damaged ones refuse every package.
func advisories(_ context.Context, in Inputs) []Check {
	const name, flaws = "advisories", "vulnerabilities"
	if in.Advisories == nil {
		return nil
	}
	if err := in.Advisories.Damage(); err != nil {
		return []Check{fail(name, "import again, or cofferdam advisory remove", "%s", sentence(err))}
	}
	malware, lists, vulnerabilities := 0, 0, 0
	unassessed := pkgref.Ecosystems()
	for _, s := range in.Advisories.Status().Sources {
		if s.Kind != string(advisory.KindMalware) {
			lists++
			continue
		}
		malware += s.Advisories
		vulnerabilities += s.Vulnerabilities
		unassessed = slices.DeleteFunc(unassessed, func(e pkgref.Ecosystem) bool { return s.Vulnerable[string(e)] > 0 })
	}
	const how = "cofferdam advisory import reads them from files of the OSV format"
	of := ok(name, "%d of malware, %s", malware, excerpt.Count(lists, "popularity list", "popularity lists"))
	if malware == 0 {
		of = warn(name, how, "no advisory of malware is imported, so that known malware is refused only where a policy does it")
	}
	if len(unassessed) > 0 {
		return []Check{of, warn(flaws, how, "no database of vulnerabilities is imported for %s, so these packages are not checked for any, and a policy with packages.vulnerabilities refuses all of them", words(unassessed))}
	}
	return []Check{of, ok(flaws, "%d known, of packages of every ecosystem", vulnerabilities)}
}

// words is "python, node".
func words(ecosystems []pkgref.Ecosystem) string {
	var all []string
	for _, e := range ecosystems {
		all = append(all, string(e))
	}
	return strings.Join(all, ", ")
}
