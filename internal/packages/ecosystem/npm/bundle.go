package npm

import (
	"io"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// bundledScript stands for what packages inside the package run: npm runs their
// install scripts as it does those of packages that it fetched.
const bundledScript = "a script of a bundled package"

// modules is the folder that packages are loaded from.
const modules = "node_modules/"

// bundle notes a package inside the package: by the folder that it is loaded
// by, and by its own name if that is another.
func (p *unpacking) bundle(path string, m archive.Member, content io.Reader) error {
	if folder, ok := strings.CutSuffix(path, "/"+gypFile); ok && isInstalled(folder) {
		p.bundledRuns = true
	}
	folder, ok := strings.CutSuffix(path, "/package.json")
	if !ok {
		return nil
	}
	at := strings.LastIndex("/"+folder, "/"+modules)
	if at < 0 {
		return nil
	}
	name := ("/" + folder)[at+1+len(modules):]
	if !pkgref.IsCanonicalName(pkgref.Node, name) {
		return nil
	}
	b, err := readMember(m, content)
	if err != nil {
		return err
	}
	inner, _, err := readClaims(b)
	if isInstalled(folder) && (err != nil || inner.runsAtInstall() || inner.wrong == "scripts") {
		p.bundledRuns = true // also if nobody can tell
	}
	if err != nil {
		inner = claims{} // a package.json that nothing can read: the folder's name is what is known
	}
	version := cleanVersion(inner.version)
	if _, err := pkgref.CanonicalVersion(pkgref.Node, version); err != nil {
		version = ""
	}
	p.addBundled(ecosystem.Bundled{Name: name, Version: version})
	if inner.name != name && pkgref.IsCanonicalName(pkgref.Node, inner.name) {
		p.addBundled(ecosystem.Bundled{Name: inner.name, Version: version})
	}
	return nil
}

func (p *unpacking) addBundled(b ecosystem.Bundled) {
	if len(p.bundled) < ecosystem.MaxBundled && !slices.Contains(p.bundled, b) {
		p.bundled = append(p.bundled, b)
	}
}

// isInstalled tells whether a folder is where clients look for packages: below
// nothing but node_modules and packages. A copy that lies elsewhere (in the tests of a package, say) is loaded by nobody.
func isInstalled(folder string) bool {
	for {
		rest, ok := strings.CutPrefix(folder, modules)
		if !ok || rest == "" {
			return false
		}
		name, below, more := strings.Cut(rest, "/")
		if strings.HasPrefix(name, "@") {
			_, below, more = strings.Cut(below, "/")
		}
		if !more {
			return true
		}
		folder = below
	}
}
