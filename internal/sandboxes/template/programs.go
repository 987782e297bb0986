package template

import (
	"path"
	"runtime"
	"slices"
)

// Having names the templates that bring a program to PATH, the smallest first. Only
// what a template is made for is known, not all that its packages happen to have; what
// the host template has is the host's matter.
func Having(program string) []string {
	var names []string
	for _, l := range layouts() {
		if l.about != "" && slices.Contains(l.brings(), program) {
			names = append(names, l.name)
		}
	}
	return names
}

// brings are the programs that a layout is made for.
func (l layout) brings() []string {
	programs := slices.Clone(l.programs)
	if !l.tools {
		return programs
	}
	for _, p := range pinned(runtime.GOARCH) {
		for link := range p.links {
			programs = append(programs, link)
		}
		for _, file := range p.programs {
			if path.Dir(file) == "usr/local/bin" {
				programs = append(programs, path.Base(file))
			}
		}
	}
	return programs
}
