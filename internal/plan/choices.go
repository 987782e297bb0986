package plan

import (
	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Choices makes what a resolver chose canonical, each release once.
func Choices(body api.ResolvedPlan) ([]admission.PlanChoice, error) {
	if len(body.Releases) > admission.MaxPlanChoices {
		return nil, fault.Invalid("the resolver names %d releases; a plan has at most %d", len(body.Releases), admission.MaxPlanChoices)
	}
	seen := map[pkgref.Ref]bool{}
	var choices []admission.PlanChoice
	for _, c := range body.Releases {
		ref, err := pkgref.New(pkgref.Ecosystem(body.Ecosystem), c.Name, c.Version)
		if err != nil || ref.Version == "" {
			return nil, fault.Invalid("%q %q %q is not a release", body.Ecosystem, c.Name, c.Version)
		}
		if seen[ref] {
			return nil, fault.Invalid("%s is named twice", ref)
		}
		seen[ref] = true
		choices = append(choices, admission.PlanChoice{Package: ref, Digests: c.Digests, File: c.File, IfRead: c.IfRead})
	}
	return choices, nil
}
