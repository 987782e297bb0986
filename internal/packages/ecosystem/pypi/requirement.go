package pypi

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// requirementName is the name and extras with which a requirement begins.
// Written once; regexps are constant.
var requirementName = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([A-Za-z0-9._, \t-]*)\])?\s*`)

const maxRequirement = 4096

// parseRequirement reads `name [extras] (specifier) ; marker` and
// `name [extras] @ url ; marker`. Of the marker only extras count: an edge is the fact
// that something may be required, on whatever system. What no extra brings and nobody
// gets otherwise is no requirement.
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
	under, always := extrasOf(marker)
	if !always && len(under) == 0 {
		return ecosystem.Requirement{}, false
	}
	asks, _ := pkgref.Extras(m[2]) // what can't be read asks for none
	return ecosystem.Requirement{Name: name, Specifier: specifier, Under: strings.Join(under, ","), Asks: strings.Join(asks, ",")}, true
}

// narrowestFirst orders the extras of each requirement by how many requirements they
// bring: which one to ask for is told in this order.
func narrowestFirst(all []ecosystem.Requirement) {
	brings := map[string]int{}
	for _, r := range all {
		for extra := range strings.SplitSeq(r.Under, ",") {
			brings[extra]++
		}
	}
	for i, r := range all {
		if !strings.Contains(r.Under, ",") {
			continue
		}
		extras := strings.Split(r.Under, ",")
		slices.SortFunc(extras, func(a, b string) int { return cmp.Or(cmp.Compare(brings[a], brings[b]), cmp.Compare(a, b)) })
		all[i].Under = strings.Join(extras, ",")
	}
}
