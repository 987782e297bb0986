package foreign

import (
	"path"
	"strings"
)

// convertMount keeps a mount of a dev container, if a sandbox can have it: as the text of docker's
// --mount, or as an object.
func (c *converter) convertMount(n *node) {
	if !c.wantKind(n, "an element of mounts", textKind, object) {
		return
	}
	options := map[string]string{}
	if n.kind == textKind && strings.Contains(n.text, `"`) {
		c.leaveOut(n, "mounts "+clipText(n.text), "it has quotes, as a name with a comma needs them; write it as an object")
		return
	}
	if n.kind == textKind {
		for option := range strings.SplitSeq(n.text, ",") {
			key, value, given := strings.Cut(strings.TrimSpace(option), "=")
			if !given {
				value = "true"
			}
			setOption(options, key, value)
		}
	}
	for key, value := range n.members() {
		if !c.wantKind(value, "a mount's "+key.text, textKind, boolean) {
			return
		}
		setOption(options, key.text, value.text)
	}
	first := func(names ...string) string {
		for _, name := range names {
			if options[name] != "" {
				return options[name]
			}
		}
		return ""
	}
	source, target := first("source", "src"), first("target", "destination", "dst")
	what := "mounts " + source
	switch kind := first("type"); {
	case kind == "tmpfs":
		c.leaveOut(n, what, "a sandbox's files are its own, and go with it")
	case kind != "bind":
		c.leaveOut(n, what, "there are no volumes; home: NAME keeps a home over runs")
	default:
		c.addBound(n, what, source, target, !isReadOnly(options))
	}
}

// setOption notes an option, whose name docker reads in any case. A mount that is said to be read-only stays so.
func setOption(options map[string]string, name, value string) {
	name = strings.ToLower(name)
	before, given := options[name]
	if (name == "readonly" || name == "ro") && given && !isFalse(before) {
		return
	}
	options[name] = value
}

func isFalse(value string) bool { return value == "false" || value == "0" }

// isReadOnly tells whether a mount's options ask for a read-only one. If two of them contradict each other, or one has
// a value that is no boolean, it is read-only.
func isReadOnly(options map[string]string) bool {
	for _, name := range []string{"readonly", "ro"} {
		if value, given := options[name]; given && !isFalse(value) {
			return true
		}
	}
	return false
}

// addBound keeps a directory of the host.
func (c *converter) addBound(n *node, what, source, target string, writable bool) {
	source = strings.Replace(source, "${localWorkspaceFolder}", c.opts.Dir, 1)
	source, unknown := c.filled(source)
	target, missing := c.filled(target)
	at := c.locate(source)
	switch target = path.Clean(target); {
	case unknown != "" || missing != "":
		c.leaveOut(n, what, "%s is known to the tool of the dev container alone", clipText(unknown+missing))
		return
	case source == "" || !path.IsAbs(target) || target == "/" || strings.ContainsAny(source+target, ":\n\x00"):
		c.failAt(n, "%s: a bind mount needs a source, and a target that is an absolute path, both without colons", clipText(what))
		return
	case at.area == ofSystem:
		c.leaveOut(n, what, "a sandbox has a system of its own, and nobody gets the host's, or a socket of it")
		return
	case at.area == ofHome || isBelow(c.opts.Home, at.path):
		c.leaveOut(n, what, "it is in your home, or has it; a sandbox has one of its own, which home: NAME keeps over runs")
		return
	case target == inside || isBelow(target, inside):
		c.leaveOut(n, what, "%s has the copy of the project", inside)
		return
	}
	for _, tree := range systemTrees() {
		if isBelow(target, tree) {
			c.leaveOut(n, what, "a sandbox has a %s of its own", tree)
			return
		}
	}
	spec := at.path + ":" + target
	if at.area == ofProject {
		spec = c.ofTheProject(at) + ":" + target
	}
	switch {
	case writable && c.hasProject(at):
		c.noteAt(n, what, "it is mounted read-only, since the project is in it, or it is a part of the project: a run writes to its copy alone")
	case writable:
		spec += ":rw"
		c.noteAt(n, what, "the run can write to %s of the host; take :rw off if it need not", clipText(at.path))
	}
	c.made.Mounts = append(c.made.Mounts, spec)
}
