package pip

import (
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// addDefaultBuild adds what clients build a project with that doesn't say it: setuptools, and of pip before 23.1, which Debian 12 has,
// wheel beside it.
func addDefaultBuild(w *manifest.Wants, file string) {
	w.Add("setuptools", file, 0)
	w.Add("wheel", file, 0)
}

// addBuild adds what the project is built with.
func (p pyprojectReader) addBuild() {
	switch {
	case p.document.Build != nil && len(p.document.Build.Requires) > 0:
		p.addLines(p.document.Build.Requires...)
		p.backend()
	case p.document.Project != nil || p.w.Has(path.Join(path.Dir(p.m.File), "setup.py")):
		addDefaultBuild(p.w, p.m.File)
	}
}

// backend adds what a build's backend asks for itself beside what the project names, by its documentation, when it builds: uv and
// pip -e have it build an editable installation.
func (p pyprojectReader) backend() {
	backend, _, _ := strings.Cut(p.document.Build.Backend, ":")
	var names []string
	switch {
	case strings.HasPrefix(backend, "hatchling."), backend == "pdm.backend" && p.document.Tool.PDM.Build.Editable == "editables":
		names = []string{"editables"}
	case backend == "mesonpy":
		names = []string{"ninja"}
	case strings.HasPrefix(backend, "scikit_build_core."):
		names = []string{"cmake", "ninja"}
	case strings.HasPrefix(backend, "setuptools.") && p.setuptoolsOfWheel():
		names = []string{"wheel"}
	}
	for _, name := range names {
		p.w.Add(name, p.m.File, p.m.LineOf("build-backend"))
	}
}

// setuptoolsOfWheel tells whether the project is built with a setuptools that asks for wheel, as those before 70.1 do.
func (p pyprojectReader) setuptoolsOfWheel() bool {
	since, _ := pkgref.ParseVersion(pkgref.Python, "70.1.0")
	newest, _ := pkgref.ParseVersion(pkgref.Python, "9999")
	for _, l := range p.document.Build.Requires {
		r, ok := parseRequirement(l)
		name, _ := pkgref.CanonicalName(pkgref.Python, r.name)
		among, understood := pkgref.ParseRange(pkgref.Python, r.among)
		if ok && name == "setuptools" && understood && r.among != "" && !among.Match(since) && !among.Match(newest) {
			return true
		}
	}
	return false
}
