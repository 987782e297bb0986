package npm

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// tagName is a dist-tag that can be asked for and printed. Written once;
// regexps are constant.
var tagName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$`)

// distTags is the Release by which a route asks for the dist-tags alone. No
// tag can have this name.
const distTags = "-/dist-tags"

// Route reads a request: BASE is the root, BASE/-/ has the registry's own
// services, BASE/PROJECT is a packument and BASE/PROJECT/RELEASE a manifest; any
// other path that ends in PROJECT/-/FILE, or has PROJECT/VERSION/ in it, is a tarball. A scope's slash may be
// encoded: clients follow no redirect reliably, so all spellings are served.
func (Protocol) Route(place ecosystem.Place, r ecosystem.Request) (ecosystem.Route, error) {
	path := openScopes(r.Path)
	segments, slash, err := ecosystem.Segments(path)
	if err != nil {
		return ecosystem.Route{}, err
	}
	below, isIndex := belowBase(place, path)
	reads := r.Method == "" || r.Method == "GET" || r.Method == "HEAD"
	if isIndex && strings.HasPrefix(below, "-/") {
		return service(strings.Split(strings.TrimSuffix(below, "/"), "/")[1:], r, reads)
	}
	switch {
	case !reads && isIndex:
		return refusedService("nothing is published from a sandbox: this gateway only reads"), nil
	case !reads:
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "nothing is written here")
	case isIndex && below != "" && strings.HasPrefix(r.Query, "write="):
		return refusedService("a page is not given for writing: this gateway only reads"), nil
	case r.Query != "":
		return ecosystem.Route{}, fault.Invalid("a query is not part of this protocol")
	}
	if place.Files && !slash && len(segments) > 0 {
		t, ok, err := tarballAt(segments)
		if err != nil {
			return ecosystem.Route{}, err
		}
		if ok {
			return ecosystem.Route{
				Kind: ecosystem.RouteFile, Project: t.project, File: t.file, Version: t.version,
				Path: "/" + strings.Join(segments, "/"),
			}, nil
		}
	}
	route, err := ecosystem.Route{}, fault.New(fault.ErrNotFound, "the path names no tarball of a package")
	if isIndex {
		route, err = pageRoute(below)
	}
	if err != nil && place.Files && !slash {
		if named, ok := releaseIn(segments); ok {
			return named, nil
		}
	}
	return route, err
}

// releaseIn reads a path in which a project's name stands before a version, with something before and behind the two, as some registries have their
// tarballs, and lockfiles that were made without the gateway. Whether it is one of that release the project's page says.
func releaseIn(segments []string) (ecosystem.Route, bool) {
	for i := 1; i < len(segments)-1; i++ {
		version, err := pkgref.CanonicalVersion(pkgref.Node, segments[i])
		if err != nil {
			continue
		}
		from := i - 1
		if from > 0 && strings.HasPrefix(segments[from-1], "@") {
			from--
		}
		project, rest, err := splitName(segments[from:])
		if from == 0 || err != nil || len(rest) != len(segments)-i {
			continue
		}
		return ecosystem.Route{
			Kind: ecosystem.RouteFile, Project: project, Version: version,
			File: segments[len(segments)-1], Path: "/" + strings.Join(segments, "/"),
		}, true
	}
	return ecosystem.Route{}, false
}

// belowBase is what of an escaped path is below the index's base.
func belowBase(place ecosystem.Place, path string) (string, bool) {
	if place.Base == "" {
		return "", false
	}
	if path+"/" == place.Base {
		return "", true
	}
	return strings.CutPrefix(path, place.Base)
}

func pageRoute(below string) (ecosystem.Route, error) {
	if below == "" {
		return ecosystem.Route{Kind: ecosystem.RouteRoot}, nil
	}
	segments, slash, err := ecosystem.Segments("/" + below)
	switch {
	case err != nil:
		return ecosystem.Route{}, err
	case slash || len(segments) == 0:
		return ecosystem.Route{}, fault.Invalid("a page's path does not end in a slash")
	}
	project, rest, err := splitName(segments)
	switch {
	case err != nil:
		return ecosystem.Route{}, err
	case len(rest) == 0:
		return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: project}, nil
	case len(rest) > 1:
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "the gateway has no such page of a package")
	case !isRelease(rest[0]):
		return ecosystem.Route{}, fault.Invalid("%q is neither a version nor a tag", redact.Cut(rest[0], maxQuoted))
	}
	return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: project, Release: rest[0]}, nil
}

func isRelease(s string) bool {
	_, err := pkgref.CanonicalVersion(pkgref.Node, s)
	return err == nil || tagName.MatchString(s)
}
