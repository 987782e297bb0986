package provenance

import (
	"strings"

	disk "github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	layouts "github.com/cofferdam-dev/cofferdam/internal/decide/inventory/all"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// workshop is what an inventory shows of the projects that are written in a sandbox. All
// of it is the guest's claim, as the packages are.
type workshop struct {
	places   map[pkgref.Ref][]string // directories of projects
	unnamed  map[string]bool         // directories of such as only a build names
	releases map[pkgref.Ref]bool     // of projects that say their version: clients leave nothing that says where a copy is from
	gives    map[pkgref.Ref]bool     // projects of which something is installed
}

func newWorkshop() *workshop {
	return &workshop{places: map[pkgref.Ref][]string{}, unnamed: map[string]bool{}, releases: map[pkgref.Ref]bool{}, gives: map[pkgref.Ref]bool{}}
}

// writes takes a project's directory.
func (w *workshop) writes(p item) {
	if p.Name == "" {
		w.unnamed[p.Path] = true
		return
	}
	project := p.release.Project()
	w.places[project] = append(w.places[project], p.Path)
	if p.release.Ecosystem.Traits().ProjectsHaveVersions && p.Version != "" {
		w.releases[p.release] = true
	}
}

// isFromProject tells of a package that was installed from a project: it says that it came from a
// directory or a built file of the sandbox, and a project of its name is written here, or
// that directory's project has no other name; or it is the release of a project that says its version.
func (w *workshop) isFromProject(p item) bool {
	if p.From == "" {
		return w.releases[p.release]
	}
	return len(w.places[p.release.Project()]) > 0 || w.unnamed[p.From]
}

// leaves tells of what lies where no interpreter looks for packages: what a client keeps
// of what it built of a project, in whatever version, and what a build leaves in one.
func (w *workshop) leaves(p item) bool {
	if p.From != "" || !isLeft(p) {
		return false
	}
	project := p.release.Project()
	if w.gives[project] {
		return true
	}
	for _, place := range w.places[project] {
		if strings.HasPrefix(p.Path, strings.TrimSuffix(place, "/")+"/") {
			return true
		}
	}
	return false
}

// isLeft tells whether a package lies where its clients keep things and no program looks
// for packages.
func isLeft(p item) bool {
	for _, l := range layouts.Layouts() {
		if leaver, can := l.(disk.Leaver); can && leaver.Leaves(p.release.Ecosystem, p.Path) {
			return true
		}
	}
	return false
}
