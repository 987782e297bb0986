package template

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
)

// recipe is a digest of all that this version builds a template of the
// distribution's packages from, apart from these: a template with another recipe
// is outdated.
func (s *Store) recipe(l layout) string {
	h := sha256.New()
	_, _ = h.Write(customizeScript)
	_, _ = h.Write(goLibraryScript)
	_, _ = fmt.Fprint(h, absentProfile())
	_, _ = fmt.Fprintf(h, "\n%q %v %v\n%v\n", l.packages, l.tools, l.manuals, debianEnv(l))
	if l.wheels {
		_, _ = fmt.Fprintf(h, "%s\n%s\n", wheelsScript, wheelsList)
	}
	if l.tools {
		for _, p := range s.pins(runtime.GOARCH) {
			slices.Sort(p.programs)
			_, _ = fmt.Fprintf(h, "%v %s %v %v\n", p.Artifact, p.tool, p.programs, p.links)
		}
	}
	return format(h)
}

// Outdated tells whether a template was built by another version's recipe. It
// can be used all the same; building it again brings it up to date.
func (s *Store) Outdated(t Template) bool {
	l, built := layoutOf(t.Name)
	return built && t.Recipe != s.recipe(l)
}
