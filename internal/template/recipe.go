package template

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
)

// recipe is a digest of all that this version builds the debian template from,
// apart from the distribution's own packages: a template with another recipe is
// outdated.
func (s *Store) recipe() string {
	h := sha256.New()
	_, _ = h.Write(customizeScript)
	_, _ = fmt.Fprintf(h, "\n%q\n%v\n", debianPackages(), debianEnv())
	for _, p := range s.pins(runtime.GOARCH) {
		slices.Sort(p.programs)
		_, _ = fmt.Fprintf(h, "%v %s %v %v\n", p.Artifact, p.tool, p.programs, p.links)
	}
	return format(h)
}

// Outdated tells whether a template was built by another version's recipe. It
// can be used all the same; building it again brings it up to date.
func (s *Store) Outdated(t Template) bool {
	return t.Name == NameDebian && t.Recipe != s.recipe()
}
