package npm

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// scopeSlash finds the encoded slash of a scoped name, the only encoding of a
// slash that there may be. Written once; regexps are constant.
var scopeSlash = regexp.MustCompile(`/(@|%40)([A-Za-z0-9._~-]+)%2[fF]`)

// openScopes gives scoped names in an escaped path a plain slash: clients and
// registries write both.
func openScopes(escaped string) string {
	if !strings.Contains(escaped, "%2") {
		return escaped
	}
	return scopeSlash.ReplaceAllString(escaped, "/$1$2/")
}

// escapeName writes a name as the one path segment that every registry knows.
func escapeName(project string) string { return strings.Replace(project, "/", "%2f", 1) }

// bareName is a name without its scope, which is what files are called by.
func bareName(project string) string {
	return project[strings.LastIndexByte(project, '/')+1:]
}

// splitName takes a project's name off the front of decoded segments.
func splitName(segments []string) (project string, rest []string, err error) {
	n := 1
	if strings.HasPrefix(segments[0], "@") {
		if len(segments) < 2 {
			return "", nil, fault.Invalid("the path names a scope without a package")
		}
		n = 2
	}
	project, err = pkgref.CanonicalName(pkgref.Node, strings.Join(segments[:n], "/"))
	return project, segments[n:], err
}

// tarball is what a tarball's path says.
type tarball struct {
	project string
	version string // canonical
	file    string // the last segment
	ran     bool   // it is what is left of the release when its install scripts ran: see Built
}

const tarballSuffix = ".tgz"

// tarballAt reads the end of a decoded path: PROJECT/-/FILE, where a scoped
// project's file may have the scope before it once more. ok is false for a path
// that has no such end; an error is one that has, but not of a release.
func tarballAt(segments []string) (t tarball, ok bool, err error) {
	last := len(segments) - 1
	dash := last - 1
	if dash >= 1 && strings.HasPrefix(segments[dash], "@") && segments[dash-1] == "-" {
		dash--
	}
	if dash < 1 || segments[dash] != "-" {
		return tarball{}, false, nil
	}
	from := dash - 1
	if from >= 1 && strings.HasPrefix(segments[from-1], "@") {
		from--
	}
	project, _, err := splitName(segments[from:dash])
	if err != nil {
		return tarball{}, true, err
	}
	scope, _, _ := strings.Cut(project, "/")
	if dash < last-1 && segments[last-1] != scope {
		return tarball{}, true, fault.Invalid("the path names two scopes")
	}
	version, named := strings.CutPrefix(segments[last], bareName(project)+"-")
	version, ran := strings.CutSuffix(version, ranSuffix)
	version, packed := strings.CutSuffix(version, tarballSuffix)
	if !named || !packed && !ran || packed && ran {
		return tarball{}, true, fault.Invalid("the path does not end in a tarball of %s", project)
	}
	if version, err = pkgref.CanonicalVersion(pkgref.Node, version); err != nil {
		return tarball{}, true, err
	}
	return tarball{project, version, segments[last], ran}, true, nil
}

// tarballOf reads a whole decoded path.
func tarballOf(path string) (tarball, bool) {
	t, ok, err := tarballAt(strings.Split(strings.TrimPrefix(path, "/"), "/"))
	return t, ok && err == nil
}
