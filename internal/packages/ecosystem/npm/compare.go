package npm

import (
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The findings that are recorded when a manifest says more than the package.json.
const (
	findDependency = "the registry's manifest requires something that its package.json does not"
	findScript     = "the registry's manifest has an install script that its package.json does not"
	findCommand    = "the registry's manifest has a command that its package.json does not, or another file for it"
)

// compare refuses a package.json that says more than the registry's manifest:
// resolvers and people read the manifest, and the package.json takes effect.
// scripts are the package's with the implicit one. A claim that only the manifest makes is found.
func compare(own *claims, scripts []string, listed *claims) (findings []string, err error) {
	more, err := compareSpecs(own.installed(), listed.installed(), "requires")
	if err != nil {
		return nil, err
	}
	morePeers, err := compareSpecs(own.peer, listed.peer, "has the peer")
	if err != nil {
		return nil, err
	}
	if more || morePeers {
		findings = append(findings, findDependency)
	}
	if err := compareScripts(own, scripts, listed); err != nil {
		return nil, err
	}
	if listed.runsAtInstall() && len(scripts) == 0 {
		findings = append(findings, findScript)
	}
	more, err = compareBins(own, listed)
	if more {
		findings = append(findings, findCommand)
	}
	return findings, err
}

// installed are dependencies with the optional ones, which take precedence.
// Registries and publishing clients move them between the two.
func (c *claims) installed() map[string]string {
	all := maps.Clone(c.dependencies)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, c.optional)
	return all
}

// compareSpecs tells whether listed has more than own; that own has something
// else is the error.
func compareSpecs(own, listed map[string]string, verb string) (more bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if !pkgref.IsCanonicalName(pkgref.Node, name) {
			return false, fault.Invalid("its package.json has a dependency with a name that no package can have")
		}
		spec, ok := listed[name]
		switch {
		case !ok:
			return false, fault.Invalid("its package.json %s %s, and the registry's manifest does not say so", verb, name)
		case plainSpec(spec) != plainSpec(own[name]):
			return false, fault.Invalid("its package.json %s %s in other versions than the registry's manifest says", verb, name)
		}
	}
	return len(listed) > len(own), nil
}

// plainSpec is a spec without blanks that say nothing; none is any version.
func plainSpec(s string) string {
	if s = strings.Join(strings.Fields(s), " "); s != "" {
		return s
	}
	return "*"
}

func compareScripts(own *claims, scripts []string, listed *claims) error {
	for _, name := range scripts {
		switch {
		case listed.installs || slices.Contains(listed.scripts, name):
		case name == gypFile && (own.noGyp || len(listed.scripts) > 0):
		default:
			return fault.Invalid("something runs when it is installed (%s), and the registry's manifest does not say so", name)
		}
	}
	return nil
}

// compareBins compares the commands that are put on the PATH.
func compareBins(own, listed *claims) (more bool, err error) {
	has, said := own.commands(), listed.commands()
	for _, name := range slices.Sorted(maps.Keys(has)) {
		target, ok := said[name]
		if !ok {
			return false, fault.Invalid("its package.json has a command that the registry's manifest does not say")
		}
		more = more || target != has[name]
	}
	if len(has) == 0 && own.binFolder != "" && own.binFolder != listed.binFolder && len(said) == 0 {
		return false, fault.Invalid("its package.json has a folder of commands that the registry's manifest does not say")
	}
	return more || len(said) > len(has) && own.binFolder == "", nil
}

// commands are the bins by name; one without a name is called as the package.
func (c *claims) commands() map[string]string {
	out := maps.Clone(c.bins)
	if target, ok := out[ownBin]; ok {
		delete(out, ownBin)
		out[bareName(c.name)] = target
	}
	return out
}
