package plan

import (
	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Choices makes what a resolver chose canonical, each release once.
func Choices(body api.ResolvedPlan) ([]planning.Choice, error) {
	if len(body.Releases) > planning.MaxChoices {
		return nil, fault.Invalid("the resolver names %d releases; a plan has at most %d", len(body.Releases), planning.MaxChoices)
	}
	seen := map[pkgref.Ref]bool{}
	var choices []planning.Choice
	for _, c := range body.Releases {
		ref, err := pkgref.New(pkgref.Ecosystem(body.Ecosystem), c.Name, c.Version)
		if err != nil || ref.Version == "" {
			return nil, fault.Invalid("%q %q %q is not a release", body.Ecosystem, c.Name, c.Version)
		}
		if seen[ref] {
			return nil, fault.Invalid("%s is named twice", ref)
		}
		seen[ref] = true
		choices = append(choices, planning.Choice{Package: ref, Digests: c.Digests, File: c.File, IfRead: c.IfRead})
	}
	return choices, nil
}
