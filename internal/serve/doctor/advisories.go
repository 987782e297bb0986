package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// advisories tells whether the imported facts about packages can be read:
// damaged ones refuse every package.
func advisories(_ context.Context, in Inputs) []Check {
	const name, flaws = "advisories", "vulnerabilities"
	if in.Advisories == nil {
		return nil
	}
	if err := in.Advisories.Damage(); err != nil {
		return []Check{failCheck(name, "import again, or cofferdam advisory remove", "%s", errorSentence(err))}
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
	of := okCheck(name, "%d of malware, %s", malware, text.Count(lists, "popularity list", "popularity lists"))
	if malware == 0 {
		of = warnCheck(name, how, "no advisory of malware is imported, so that known malware is refused only where a policy does it")
	}
	if len(unassessed) > 0 {
		return []Check{of, warnCheck(flaws, how, "no database of vulnerabilities is imported for %s, so these packages are not checked for any, and a policy with packages.vulnerabilities refuses all of them", ecosystemNames(unassessed))}
	}
	return []Check{of, okCheck(flaws, "%d known, of packages of every ecosystem", vulnerabilities)}
}

// ecosystemNames is "python, node".
func ecosystemNames(ecosystems []pkgref.Ecosystem) string {
	var all []string
	for _, e := range ecosystems {
		all = append(all, string(e))
	}
	return strings.Join(all, ", ")
}
