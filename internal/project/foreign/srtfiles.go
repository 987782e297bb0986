package foreign

import (
	"slices"
	"strings"
)

// mount is a path of the host that the sandbox sees under the same name.
type mount struct {
	at       *node
	path     string
	writable bool
}

// srtFiles keeps what a run may write and read. There, all of the host is readable but for
// what is denied; here it is the project, and what is mounted.
func (c *converter) srtFiles(n *node) {
	writes := false
	for _, e := range c.textsOf(n.getValue("allowWrite"), "filesystem.allowWrite") {
		if at := c.locate(e.text); at.area == ofProject {
			writes = true
			c.noteAt(e, e.text, "the run writes into a copy of the project; cofferdam apply brings over what you want of it")
		} else {
			c.addShare(e, at, true)
		}
	}
	for _, e := range c.textsOf(n.getValue("allowRead"), "filesystem.allowRead") {
		if at := c.locate(e.text); at.area == ofProject {
			c.noteAt(e, e.text, "the project is readable, but for what is hidden of it")
		} else {
			c.addShare(e, at, false)
		}
	}
	c.project(writes)
	for _, e := range c.textsOf(n.getValue("denyWrite"), "filesystem.denyWrite") {
		c.unwritable(e, writes)
	}
	for key := range n.members() {
		switch key.text {
		case "allowWrite", "allowRead", "denyRead", "denyWrite":
		case "disabled":
			c.leaveOut(key, "filesystem.disabled", "a sandbox always has a file system of its own")
		case "allowGitConfig":
			c.leaveOut(key, "filesystem.allowGitConfig", "cofferdam apply brings .git over if you name it")
		default:
			c.leaveOut(key, "filesystem."+key.text, "srt does not read it")
		}
	}
}

// project lets a run see the project: a copy, or read-only.
func (c *converter) project(writes bool) {
	if writes {
		c.made.Workspace = "copy"
		return
	}
	c.made.Mounts = append(c.made.Mounts, ".:"+inside)
}

// writeMounts writes down what is left to be mounted.
func (c *converter) writeMounts() {
	for _, m := range c.mounts {
		spec := m.path + ":" + m.path
		if m.writable {
			spec += ":rw"
		}
		c.made.Mounts = append(c.made.Mounts, spec)
	}
}

// addShare adds a path that is not the project's, if a sandbox can have it.
func (c *converter) addShare(e *node, at settingsPath, writable bool) {
	switch {
	case at.glob:
		c.leaveOut(e, e.text, "a mount is no pattern; name the directory")
	case at.area == ofSystem:
		c.leaveOut(e, e.text, "a sandbox has a system of its own, and nobody gets the host's")
	case at.area == ofTemp:
		c.leaveOut(e, e.text, "a sandbox has a /tmp of its own, and may write there")
	case at.area == ofHome:
		c.leaveOut(e, e.text, "it is in your home; a sandbox has one of its own, which home: NAME keeps over runs")
	case strings.Contains(at.path, ":"):
		c.leaveOut(e, e.text, "a path with a colon can't be mounted under its own name")
	case !slices.ContainsFunc(c.mounts, func(m *mount) bool { return m.path == at.path }):
		if writable && c.hasProject(at) {
			c.noteAt(e, e.text, "it is mounted read-only, since the project is in it: a run writes to its copy alone")
			writable = false
		}
		c.mounts = append(c.mounts, &mount{at: e, path: at.path, writable: writable})
	}
}

// unwritable makes read-only what must not be written of what is mounted.
func (c *converter) unwritable(e *node, writes bool) {
	at := c.locate(e.text)
	if at.area == ofProject && writes {
		c.noteAt(e, e.text, "what the run writes there stays in its copy until you bring it over")
	}
	for _, m := range slices.Clone(c.mounts) {
		switch {
		case !m.writable:
		case isBelow(m.path, at.path):
			m.writable = false
			c.noteAt(e, e.text, "%s is mounted read-only", clipText(m.path))
		case !at.meetsDir(m.path):
		case at.area == elsewhere && !at.glob:
			c.addShare(e, at, false) // lies over the other, read-only
		default:
			m.writable = false
			c.noteAt(e, e.text, "%s is mounted read-only as a whole, since a part of it can't be said", clipText(m.path))
		}
	}
}

// unreadable are the paths that must not be read.
func (c *converter) unreadable(root *node) []*node {
	all := slices.Clone(c.textsOf(root.getValue("filesystem").getValue("denyRead"), "filesystem.denyRead"))
	if secrets := root.getValue("credentials").getValue("files"); secrets != nil && secrets.kind == array {
		for _, e := range secrets.items {
			// One with a placeholder would be readable here as it is.
			if name := e.getValue("path"); name != nil && name.kind == textKind {
				all = append(all, name)
			}
		}
	}
	return all
}

// unread hides a path of the project, and mounts nothing that has it.
func (c *converter) unread(e *node) {
	at := c.locate(e.text)
	c.mounts = slices.DeleteFunc(c.mounts, func(m *mount) bool {
		if !at.meetsDir(m.path) {
			return false
		}
		c.leaveOut(m.at, m.at.text, "%s in it must not be read, and can be hidden in the project only", clipText(e.text))
		return true
	})
	rel, ok := c.ofTheProject(at)
	switch {
	case !ok && isBelow(c.opts.Dir, at.path):
		c.noteAt(e, e.text, "the project is in it, and shown all the same: it is what a run works on")
		return
	case !ok:
		return // what is not mounted is not readable
	case strings.ContainsAny(rel, "\r\n\x00"):
		c.failAt(e, "%q can't be hidden: .aiignore has no word for a path with a line feed; rename it", e.text)
		return
	}
	pattern := "/" + rel
	switch {
	case rel == ".":
		pattern = "/*"
	case !at.glob:
		pattern = "/" + asItself(rel)
	}
	if !slices.Contains(c.hidden, pattern) {
		c.hidden = append(c.hidden, pattern)
		c.noteAt(e, e.text, "hidden by .aiignore, which has %s", clipText(pattern))
	}
}

// asItself is a path without wildcards as a pattern of an ignore file, in which a backslash and blanks at the end have a meaning.
func asItself(rel string) string {
	rel = strings.ReplaceAll(rel, `\`, `\\`)
	short := strings.TrimRight(rel, " ")
	return short + strings.Repeat(`\ `, len(rel)-len(short))
}
