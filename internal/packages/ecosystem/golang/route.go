package golang

import (
	"regexp"
	"strings"

	"golang.org/x/mod/module"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The ends of a version's files, and the two names that are none's.
const (
	extInfo    = ".info"
	extMod     = ".mod"
	extZip     = ".zip"
	fileLatest = "@latest"
	folder     = "@v"
)

// maxVersion bounds a version and a query, which upstreams hear, in bytes. A pseudo-version
// of a tag with a long name has some 60.
const maxVersion = 128

// queryText is what of a branch's, a tag's or a commit's name is passed on.
var queryText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,127}$`)

// Route reads a request below the index's base: MODULE/@v/FILE, MODULE/@latest,
// sumdb/DATABASE/... A place with files only has zips.
func (Protocol) Route(place ecosystem.Place, r ecosystem.Request) (ecosystem.Route, error) {
	if r.Query != "" {
		return ecosystem.Route{}, fault.Invalid("a query is not part of this protocol")
	}
	segments, slash, err := ecosystem.Segments(r.Path)
	if err != nil {
		return ecosystem.Route{}, err
	}
	base := place.Base
	if base == "" {
		base = "/"
	}
	below := strings.Count(base, "/") - 1
	if (r.Method != "" && r.Method != "GET" && r.Method != "HEAD") || slash || !strings.HasPrefix(r.Path, base) || len(segments) <= below {
		return ecosystem.Route{}, noRoute()
	}
	path := "/" + strings.Join(segments, "/")
	segments = segments[below:]
	if place.Base != "" && segments[0] == databases {
		return databaseRoute(segments[1:], path)
	}
	route, err := moduleRoute(segments, path)
	if err == nil && place.Base == "" && (!place.Files || route.Kind != ecosystem.RouteFile) {
		return ecosystem.Route{}, noRoute()
	}
	return route, err
}

func noRoute() error {
	return fault.New(fault.ErrNotFound, "the path names no file of a module proxy")
}

// moduleRoute reads MODULE/@latest and MODULE/@v/FILE.
func moduleRoute(segments []string, path string) (ecosystem.Route, error) {
	last := segments[len(segments)-1]
	segments = segments[:len(segments)-1]
	if last != fileLatest {
		if len(segments) == 0 || segments[len(segments)-1] != folder {
			return ecosystem.Route{}, noRoute()
		}
		segments = segments[:len(segments)-1]
	}
	project, err := unescapeModule(strings.Join(segments, "/"))
	if err != nil {
		return ecosystem.Route{}, err
	}
	switch last {
	case "list":
		return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: project}, nil
	case fileLatest:
		return ecosystem.Route{
			Kind: ecosystem.RouteAttachment, Project: project, File: fileLatest, Version: "latest", Query: true, Path: path,
		}, nil
	}
	return versionRoute(project, last, path)
}

// versionRoute reads VERSION.info, VERSION.mod and VERSION.zip.
func versionRoute(project, last, path string) (ecosystem.Route, error) {
	dot := strings.LastIndexByte(last, '.')
	if dot < 0 {
		return ecosystem.Route{}, noRoute()
	}
	stem, ext := last[:dot], last[dot:]
	route := ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: project, Path: path}
	switch ext {
	case extInfo, extMod:
	case extZip:
		route.Kind = ecosystem.RouteFile
	default:
		return ecosystem.Route{}, noRoute()
	}
	version, err := module.UnescapeVersion(stem)
	if err != nil || escapeVersion(version) != stem || len(version) > maxVersion {
		return ecosystem.Route{}, fault.Invalid("%q is not a version as module proxies spell it", redact.Cut(stem, maxQuoted))
	}
	route.Version, route.File = version, version+ext
	switch {
	case isRelease(project, version):
	case ext == extInfo && queryText.MatchString(version):
		route.Query = true
	default:
		return ecosystem.Route{}, fault.Invalid("%q is not a version that %s can have", redact.Cut(version, maxQuoted), redact.Cut(project, maxQuoted))
	}
	return route, nil
}

// unescapeModule reads a module's path as proxies spell it.
func unescapeModule(escaped string) (string, error) {
	project, err := module.UnescapePath(escaped)
	if err != nil || escapePath(project) != escaped || !pkgref.IsCanonicalName(pkgref.Go, project) {
		return "", fault.Invalid("%q is not a module's path as module proxies spell it", redact.Cut(escaped, maxQuoted))
	}
	return project, nil
}
