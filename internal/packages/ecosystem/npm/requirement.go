package npm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxRequirements bounds the requirements of one release; the largest real
// ones have some two thousand.
const maxRequirements = 10_000

// requirements are what a release may require: dependencies, optional ones and
// those of whoever depends on it (peers), which clients install too. Sorted, so
// that equal claims give equal lists.
func (c *claims) requirements() []ecosystem.Requirement {
	var out []ecosystem.Requirement
	c.eachSpec(func(name, spec string) {
		if !pkgref.IsCanonicalName(pkgref.Node, name) {
			return
		}
		r, kind := readSpec(name, spec)
		if kind == specBroken {
			return
		}
		if kind == specDirect && r.Name == "" {
			r.Name = name
		}
		_, r.Optional = c.optional[name] // it goes before the same name in dependencies
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	})
	return out
}

// ownPreReleases are the pre-releases of its own number that a release requires exactly, of
// its own project: as an alias (npm:NAME@1.2.3-linux-x64), since a manifest can't
// require its own name.
func (c *claims) ownPreReleases() []string {
	own, ok := pkgref.ParseVersion(pkgref.Node, c.version)
	if !ok {
		return nil
	}
	var parts []string
	c.eachSpec(func(name, spec string) {
		wanted, exact, ok := behindAlias(name, spec)
		part, isVersion := pkgref.ParseVersion(pkgref.Node, exact)
		if ok && isVersion && wanted == c.name && exact != c.version && part.PreRelease() && part.SameNumbers(own) && !slices.Contains(parts, exact) {
			parts = append(parts, exact)
		}
	})
	return parts
}

// eachSpec visits all dependencies by kind and name.
func (c *claims) eachSpec(visit func(name, spec string)) {
	for _, m := range []map[string]string{c.dependencies, c.optional, c.peer} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			visit(name, m[name])
		}
	}
}

// unservable says why nobody may have a release for what it requires; "" if
// there is no reason.
func (c *claims) unservable() string {
	if n := len(c.dependencies) + len(c.optional) + len(c.peer); n > maxRequirements {
		return fmt.Sprintf("it has more than %d dependencies", maxRequirements)
	}
	reason := ""
	c.eachSpec(func(name, spec string) {
		if reason != "" {
			return
		}
		if !pkgref.IsCanonicalName(pkgref.Node, name) {
			reason = "one of its dependencies has a name that no package can have"
			return
		}
		if wanted, spec, ok := behindAlias(name, spec); ok && isDirect(wanted, spec) {
			reason = "it requires " + name + " by a URL, a repository or a path instead of a version, which no registry serves"
		}
	})
	return reason
}

// Listed reads what a release requires from its manifest: resolvers know it
// before any of its bytes are fetched.
func (Protocol) Listed(_ ecosystem.File, row []byte) ([]ecosystem.Requirement, error) {
	c, _, err := readClaims(row)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.requirements(), func(r ecosystem.Requirement) bool { return r.Direct }), nil
}
