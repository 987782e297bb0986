package pkgref

import (
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

// Go is what the go command gets from a module proxy.
const Go Ecosystem = "go"

type goFamily struct{ ordinary }

func (goFamily) ecosystem() Ecosystem                  { return Go }
func (goFamily) words() []string                       { return []string{"golang"} }
func (goFamily) grammar() grammar                      { return goGrammar }
func (goFamily) name(written string) (string, bool)    { return goName(written) }
func (goFamily) version(written string) (string, bool) { return written, goVersion(written) }
func (goFamily) fits(name, version string) bool        { return goRelease(name, version) }

func (goFamily) traits() Traits {
	return Traits{
		OSV: "Go", Table: 'g', SpecifierExample: ">=v1.2.3,<v2", VersionLetter: "v", NamesArePaths: true,
		Archive: ".zip", Between: "@", AsksVersions: true,
	}
}

func (goFamily) lockfiles() []Lockfile {
	return []Lockfile{{"go.sum", "go.sum"}, {"go.work.sum", "go.work.sum"}}
}

// goName accepts a module path verbatim, by the rules of the go command: paths
// are case-sensitive, and two spellings are two modules.
func goName(path string) (string, bool) {
	return path, len(path) <= maxModulePath && module.CheckPath(path) == nil
}

// goVersion accepts a canonical version verbatim: "v1.2.3", a pre-release or
// pseudo-version of it, or from v2 on "+incompatible"; no other build metadata.
func goVersion(version string) bool {
	if _, ok := semantic.ParseGo(version); !ok || module.CanonicalVersion(version) != version {
		return false
	}
	if !strings.HasSuffix(version, "+incompatible") {
		return true
	}
	major := semver.Major(version)
	return major != "v0" && major != "v1"
}

// goRelease tells whether a module can have a version: a path's major version
// suffix must be the version's, and none is v0, v1 or "+incompatible".
func goRelease(path, version string) bool {
	_, major, ok := module.SplitPathVersion(path)
	if !ok || (major != "" && strings.HasSuffix(version, "+incompatible")) {
		return false
	}
	return module.Check(path, version) == nil
}
