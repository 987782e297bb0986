package plan

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// The effects of a release of a plan, beside the policy's own.
const (
	EffectAllow = "allow"
	EffectHold  = "hold"
	EffectDeny  = "deny"
	// EffectError is of a release that the gateway never showed.
	EffectError = "error"
)

// Choices makes what a resolver chose canonical, each release once.
func Choices(ecosystem pkgref.Ecosystem, releases []installer.Choice) ([]planning.Choice, error) {
	if len(releases) > planning.MaxChoices {
		return nil, fault.Invalid("the resolver names %d releases; a plan has at most %d", len(releases), planning.MaxChoices)
	}
	seen := map[pkgref.Ref]bool{}
	var choices []planning.Choice
	for _, c := range releases {
		ref, err := pkgref.New(ecosystem, c.Name, c.Version)
		if err != nil || ref.Version == "" {
			return nil, fault.Invalid("%q %q %q is not a release", ecosystem, c.Name, c.Version)
		}
		if seen[ref] {
			return nil, fault.Invalid("%s is named twice", ref)
		}
		seen[ref] = true
		choices = append(choices, planning.Choice{Package: ref, Digests: c.Digests, File: c.File, IfRead: c.IfRead})
	}
	return choices, nil
}
