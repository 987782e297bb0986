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
	ofTemp                // in /tmp, of which a sandbox has one of its own
	ofSystem              // what a sandbox has of its own, or what nobody gets
)

// settingsPath is where a path of the settings leads.
type settingsPath struct {
	area area
	path string // absolute and clean
	glob bool   // it is a pattern
}

// locate finds out where a path leads: relative ones from the project, ~ from home.
func (c *converter) locate(p string) settingsPath {
	at := settingsPath{glob: strings.ContainsAny(p, "*?[")}
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
	case isBelow(at.path, "/tmp") || isBelow(at.path, "/var/tmp"):
		at.area = ofTemp
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

// ofTheProject is what of the project a path or a pattern names, in relation to it: "." is all.
// A pattern may lead there from anywhere.
func (c *converter) ofTheProject(at settingsPath) (rel string, ok bool) {
	if at.area == ofProject {
		return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(at.path, c.opts.Dir), "/"), "."), true
	}
	if !at.glob {
		return "", false
	}
	parts, dir := strings.Split(at.path, "/"), strings.Split(strings.TrimSuffix(c.opts.Dir, "/"), "/")
	for i, part := range parts {
		switch {
		case part == "**":
			return strings.Join(parts[i:], "/"), true
		case i == len(dir):
			return strings.Join(parts[i:], "/"), true
		}
		if matches, err := path.Match(part, dir[i]); err != nil || !matches && !strings.Contains(part, "**") {
			return "", false
		}
	}
	return "", false
}

// hasProject tells whether a path is in the project, or has it: a run that could write there
// could change what the person's own programs run, such as hooks of git.
func (c *converter) hasProject(at settingsPath) bool {
	return at.area == ofProject || isBelow(c.opts.Dir, at.path)
}

// literal is what a pattern begins with before its first wildcard.
func literal(p string) string {
	if i := strings.IndexAny(p, "*?["); i >= 0 {
		p = p[:strings.LastIndexByte(p[:i], '/')+1]
	}
	return cmp.Or(strings.TrimSuffix(p, "/"), "/")
}

// meetsDir tells whether a path or a pattern can name something in a directory.
func (at settingsPath) meetsDir(dir string) bool {
	if at.glob {
		return isBelow(literal(at.path), dir) || isBelow(dir, literal(at.path))
	}
	return isBelow(at.path, dir)
}
