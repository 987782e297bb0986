package doctor

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/advisory"
)

// advisories tells whether the imported facts about packages can be read:
// damaged ones refuse every package.
func advisories(_ context.Context, in Inputs) []Check {
	const name = "advisories"
	if in.Advisories == nil {
		return nil
	}
	if err := in.Advisories.Damage(); err != nil {
		return []Check{fail(name, "import again, or cofferdam advisory remove", "%s", sentence(err))}
	}
	malware, lists, vulnerabilities := 0, 0, 0
	for _, s := range in.Advisories.Status().Sources {
		if s.Kind == string(advisory.KindMalware) {
			malware += s.Advisories
			vulnerabilities += s.Vulnerabilities
		} else {
			lists++
		}
	}
	const how = "cofferdam advisory import reads them from files of the OSV format"
	switch {
	case malware == 0:
		return []Check{warn(name, how, "no advisory of malware is imported, so that known malware is refused only where a policy does it")}
	case vulnerabilities == 0:
		return []Check{warn(name, how, "no known vulnerabilities are imported, so that they are not checked, and policies with packages.vulnerabilities refuse every package")}
	}
	return []Check{ok(name, "%d of malware, %d of vulnerabilities, %d popularity lists", malware, vulnerabilities, lists)}
}
