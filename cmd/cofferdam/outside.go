package main

import (
	"fmt"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project/outside"
)

// mostOutside bounds the lines about what lies elsewhere.
const mostOutside = 8

// shownPaths are the paths of the host that a sandbox is shown.
type shownPaths struct {
	all    []outside.Shown
	copied string // the directory of which it has a copy in /workspace; "": none
}

func showing(mounts []api.Mount) shownPaths {
	var s shownPaths
	for _, m := range mounts {
		s.all = append(s.all, outside.Shown{Source: m.Source, Destination: m.Destination, ReadWrite: m.ReadWrite})
	}
	return s
}

// listShownPaths lists the paths that a run is shown that was started in a directory.
func (f runFlags) listShownPaths(cwd string, mounts []api.Mount) shownPaths {
	s := showing(mounts)
	if f.workspace == workspaceCopy {
		s.copied = cwd
	}
	return s
}

// outsideLines are about parts of projects that are shown, and lie outside of all that is.
func outsideLines(s shownPaths) []string {
	var lines []string
	add := func(of outside.Shown, copied bool) {
		for _, part := range outside.Find(of, s.all, projectFiles(of.Source), copied) {
			lines = append(lines, part.Line())
		}
	}
	if s.copied != "" {
		add(outside.Shown{Source: s.copied, Destination: workspaceInside, ReadWrite: true}, true)
	}
	for _, of := range s.all {
		add(of, false)
	}
	if more := len(lines) - mostOutside; more > 0 {
		lines = append(lines[:mostOutside], fmt.Sprintf("so do %d more", more))
	}
	return lines
}

// tellOutside says before the start what a project will not find in the sandbox, and which flags show it. Nothing is
// mounted because a file of the project says so.
func tellOutside(s shownPaths, say func(format string, args ...any)) {
	for _, line := range outsideLines(s) {
		say("note: %s", line)
	}
}

// outsideProject are the lines about what runs with a project's settings are shown.
func outsideProject(p *project.Project) []string {
	var f runFlags
	f.applySettings(p, func(string) bool { return false })
	mounts, err := parseMounts(p.Dir, f.mounts)
	if err != nil {
		return nil // a run says what is wrong with them
	}
	return outsideLines(f.listShownPaths(p.Dir, mounts))
}

// outsideText are such lines behind a project's settings.
func outsideText(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n\nparts of the project are not in what its runs are shown:\n\n  " + strings.Join(lines, "\n  ")
}
