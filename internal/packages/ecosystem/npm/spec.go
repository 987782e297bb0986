package npm

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// packedFile is how npm tells a file from a tag. Written once; regexps are
// constant.
var packedFile = regexp.MustCompile(`(?i)[.](?:tgz|tar\.gz|tar)$`)

// maxSpec bounds a spec; the longest real ranges have some 300 bytes.
const maxSpec = 2048

// specKind is what a spec asks for.
type specKind int

const (
	specRange  specKind = iota // versions, or a tag, of a package of the registry
	specDirect                 // a URL, a repository, a file: nothing that a registry serves
	specBroken                 // nothing that a client could read either
)

// readSpec reads what a manifest writes beside the dependency called name. Of an alias
// (npm:real@range) the requirement is one of the real package. A requirement that can't be read
// requires nothing, and so admits nothing.
func readSpec(name, spec string) (ecosystem.Requirement, specKind) {
	name, spec, ok := behindAlias(name, spec)
	switch {
	case !ok:
		return ecosystem.Requirement{}, specBroken
	case isDirect(name, spec):
		return ecosystem.Requirement{Name: name, Direct: true}, specDirect
	}
	if _, isRange := pkgref.ParseRange(pkgref.Node, spec); !isRange && !tagName.MatchString(spec) {
		return ecosystem.Requirement{}, specBroken
	}
	if spec == "*" {
		spec = ""
	}
	return ecosystem.Requirement{Name: name, Specifier: strings.Join(strings.Fields(spec), " ")}, specRange
}

// behindAlias gives the package that is really wanted, and its range. An alias
// of what is no package has the name "" and is direct. ok is false for what is
// too long to be looked at.
func behindAlias(name, spec string) (string, string, bool) {
	if len(spec) > maxSpec {
		return "", "", false
	}
	name, spec = pkgref.NodeAlias(name, spec)
	return name, spec, true
}

// isDirect tells whether a spec is of something that no registry serves: a URL,
// a repository, a path, a file.
func isDirect(name, spec string) bool {
	return name == "" || strings.ContainsAny(spec, `:/\`) || strings.HasPrefix(spec, ".") || packedFile.MatchString(spec)
}
