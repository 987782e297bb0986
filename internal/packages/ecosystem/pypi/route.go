package pypi

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

const sidecarSuffix = ".metadata"

// Route reads a request: BASE/ is the root, BASE/project/ a page, any other
// path that ends in a distribution's name is a file or its sidecar.
func (Protocol) Route(place ecosystem.Place, r ecosystem.Request) (ecosystem.Route, error) {
	if r.Query != "" {
		return ecosystem.Route{}, fault.Invalid("a query is not part of this protocol")
	}
	segments, slash, err := ecosystem.Segments(r.Path)
	if err != nil {
		return ecosystem.Route{}, err
	}
	if place.Base != "" && (strings.HasPrefix(r.Path, place.Base) || r.Path+"/" == place.Base) {
		if route, ok, err := indexRoute(place, r.Path); ok || err != nil {
			return route, err
		}
	}
	if !place.Files || slash || len(segments) == 0 {
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "the gateway has no such page")
	}
	return fileRoute(segments)
}

// indexRoute reads what is below the index's base. ok is false for what may be
// a file there.
func indexRoute(place ecosystem.Place, path string) (ecosystem.Route, bool, error) {
	rest, ok := strings.CutPrefix(path, place.Base)
	if !ok { // the base without its slash
		return ecosystem.Route{Kind: ecosystem.RouteRedirect, Location: place.Base}, true, nil
	}
	if rest == "" {
		return ecosystem.Route{Kind: ecosystem.RouteRoot}, true, nil
	}
	name, below, slashed := strings.Cut(rest, "/")
	if below != "" || (!slashed && pkgref.IsPythonFile(strings.TrimSuffix(name, sidecarSuffix))) {
		return ecosystem.Route{}, false, nil
	}
	project, err := pkgref.CanonicalName(pkgref.Python, name)
	if err != nil {
		return ecosystem.Route{}, false, err
	}
	if name != project || !slashed {
		return ecosystem.Route{Kind: ecosystem.RouteRedirect, Project: project, Location: place.Base + project + "/"}, true, nil
	}
	return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: project}, true, nil
}

func fileRoute(segments []string) (ecosystem.Route, error) {
	last := segments[len(segments)-1]
	name, isSidecar := strings.CutSuffix(last, sidecarSuffix)
	if !pkgref.IsPythonFile(name) {
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "the path names neither a project's page nor a distribution file")
	}
	d, err := pkgref.ParsePythonFile(name, "")
	if err != nil {
		return ecosystem.Route{}, err
	}
	segments[len(segments)-1] = name
	route := ecosystem.Route{
		Kind:    ecosystem.RouteFile,
		Project: d.Project,
		File:    name,
		Version: d.Version,
		Path:    "/" + strings.Join(segments, "/"),
	}
	if isSidecar {
		route.Kind = ecosystem.RouteSidecar
	}
	return route, nil
}
