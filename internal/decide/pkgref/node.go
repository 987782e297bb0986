package pkgref

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

// Node is what the clients of npm's registry get from there.
const Node Ecosystem = "node"

type nodeFamily struct{ ordinary }

func (nodeFamily) ecosystem() Ecosystem                      { return Node }
func (nodeFamily) words() []string                           { return []string{"npm", "pnpm", "nodejs", "javascript", "js"} }
func (nodeFamily) grammar() grammar                          { return nodeGrammar }
func (nodeFamily) name(written string) (string, bool)        { return nodeName(written) }
func (nodeFamily) alias(name, spec string) (of, rang string) { return NodeAlias(name, spec) }

func (nodeFamily) version(written string) (string, bool) {
	_, ok := semantic.Parse(written)
	return written, ok
}

func (nodeFamily) traits() Traits {
	return Traits{
		OSV: "npm", Table: 'n', SpecifierExample: "^1.2.3", XRanges: true, SeveralVersions: true,
		RequirementsOnPages: true, ProjectsHaveVersions: true, Archive: ".tgz", Between: "@", Scripts: true,
	}
}

func (nodeFamily) lockfiles() []Lockfile {
	return []Lockfile{
		{"package-lock.json", "package-lock.json"}, {"npm-shrinkwrap.json", "npm-shrinkwrap.json"}, {"pnpm-lock.yaml", "pnpm-lock.yaml"},
	}
}

// nodeName accepts "name" and "@scope/name" verbatim. npm compares names
// exactly, and old names with capitals are packages of their own, so no
// spelling is folded into another.
func nodeName(name string) (string, bool) {
	if len(name) > maxName {
		return "", false
	}
	bare := name
	if rest, scoped := strings.CutPrefix(name, "@"); scoped {
		scope, after, ok := strings.Cut(rest, "/")
		if !ok || !nodePart(scope) {
			return "", false
		}
		bare = after
	}
	return name, nodePart(bare) && bare != "node_modules" && bare != "favicon.ico"
}

// nodePart is one path segment that no URL or file system reads as anything
// but itself.
func nodePart(s string) bool {
	if s == "" || s[0] == '.' || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isLower(c) && !isUpper(c) && !isDigit(c) && !strings.ContainsRune("-._~", rune(c)) {
			return false
		}
	}
	return true
}

// NodeAlias gives the package that a manifest's dependency really is of, and its
// range, without white space around them: of `"a": "npm:b@^1"` that is b and ^1.
// The prefix counts in any case, as for the clients. An alias of what is no package
// has the name "".
func NodeAlias(name, spec string) (of, rang string) {
	const alias = "npm:"
	spec = strings.TrimSpace(spec)
	if len(spec) < len(alias) || !strings.EqualFold(spec[:len(alias)], alias) {
		return name, spec
	}
	of = strings.TrimSpace(spec[len(alias):])
	if at := strings.LastIndexByte(of, '@'); at > 0 {
		of, rang = of[:at], strings.TrimSpace(of[at+1:])
	}
	if !IsCanonicalName(Node, of) {
		of = ""
	}
	return of, rang
}
