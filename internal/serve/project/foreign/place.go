package foreign

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// area is where a path leads.
type area int

const (
	elsewhere area = iota // on the host
	ofProject             // in the project's directory, or that itself
	ofHome                // in the person's
	ofSystem              // what a sandbox has of its own, or what nobody gets
)

// settingsPath is where a path of the settings leads.
type settingsPath struct {
	area area
	path string // absolute and clean
}

// locate finds out where a path leads: relative ones from the project, ~ from home.
func (c *converter) locate(p string) settingsPath {
	var at settingsPath
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		p = path.Join(c.opts.Home, p[1:])
	case !path.IsAbs(p):
		p = path.Join(c.opts.Dir, p)
	}
	at.path = path.Clean(p)
	switch {
	case isBelow(at.path, c.opts.Dir):
		at.area = ofProject
	case at.path == "/" || slices.ContainsFunc(systemTrees(), func(tree string) bool { return isBelow(at.path, tree) }):
		at.area = ofSystem
	case isBelow(at.path, c.opts.Home):
		at.area = ofHome
	}
	return at
}

// systemTrees are what a sandbox has of its own, and the host's devices and sockets.
func systemTrees() []string {
	return []string{"/proc", "/sys", "/dev", "/run", "/var/run", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/.cofferdam"}
}

// isBelow tells whether a clean path is a directory, or in it.
func isBelow(p, dir string) bool {
	return dir != "" && (p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/"))
}

// ofTheProject returns the path of something in the project in relation to it: "." is all.
func (c *converter) ofTheProject(at settingsPath) string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(at.path, c.opts.Dir), "/"), ".")
}

// hasProject tells whether a path is in the project, or has it: a run that could write there
// could change what the person's own programs run, such as hooks of git.
func (c *converter) hasProject(at settingsPath) bool {
	return at.area == ofProject || isBelow(c.opts.Dir, at.path)
}
