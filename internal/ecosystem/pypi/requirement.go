package pypi

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// requirementName is the name and extras with which a requirement begins.
// Written once; regexps are constant.
var requirementName = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[A-Za-z0-9._, \t-]*\])?\s*`)

const maxRequirement = 4096

// parseRequirement reads `name [extras] (specifier) ; marker` and
// `name [extras] @ url ; marker`. Marker and extras are conditions and are
// dropped but for Optional: an edge is the fact that something may be required.
func parseRequirement(text string) (ecosystem.Requirement, bool) {
	if len(text) > maxRequirement {
		return ecosystem.Requirement{}, false
	}
	m := requirementName.FindStringSubmatch(text)
	if m == nil {
		return ecosystem.Requirement{}, false
	}
	name, err := pkgref.CanonicalName(pkgref.Python, m[1])
	if err != nil {
		return ecosystem.Requirement{}, false
	}
	rest := text[len(m[0]):]
	if strings.HasPrefix(rest, "@") {
		return ecosystem.Requirement{Name: name, Direct: true}, true
	}
	specifier, marker, _ := strings.Cut(rest, ";")
	specifier = strings.TrimSpace(specifier)
	if inner, ok := strings.CutPrefix(specifier, "("); ok {
		if inner, ok = strings.CutSuffix(inner, ")"); !ok {
			return ecosystem.Requirement{}, false
		}
		specifier = inner
	}
	specifier = strings.Join(strings.Fields(specifier), "")
	if _, ok := pkgref.ParseRange(pkgref.Python, specifier); !ok {
		return ecosystem.Requirement{}, false
	}
	return ecosystem.Requirement{Name: name, Specifier: specifier, Optional: ofExtra(marker)}, true
}

// asksExtra finds the condition that only an extra fulfils. Written once; regexps are
// constant.
var asksExtra = regexp.MustCompile(`\bextra\s*==`)

// ofExtra tells that a requirement counts only for whoever names an extra.
func ofExtra(marker string) bool {
	return asksExtra.MatchString(marker) && !strings.Contains(marker, " or ")
}
