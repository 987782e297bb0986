package foreign

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// devContainer converts a devcontainer.json.
func (c *converter) devContainer(root *node) {
	c.made.Workspace = "copy"
	c.noteAt(root, "the project", "the run works in a copy of it, at %s; cofferdam apply brings over what you want of that", inside)
	c.noteAt(root, "the network", "a dev container reaches everything, and a sandbox what its policy lists: cofferdam policy init, and network_allowlist for hosts")
	for key, value := range root.members() {
		switch key.text {
		case "forwardPorts", "appPort":
			c.convertPorts(key.text, value)
		case "containerEnv", "remoteEnv":
			c.convertEnvironment(key.text, value)
		case "mounts":
			if c.wantKind(value, "mounts", array) {
				for _, e := range value.items {
					c.convertMount(e)
				}
			}
		case "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand":
		case "features":
			if c.wantKind(value, "features", object) {
				for feature := range value.members() {
					c.leaveOut(feature, feature.text, "features aren't installed; a template of your own can have what it brings: docs/templates.md")
				}
			}
		case "customizations":
			c.leaveOut(key, key.text, "it is for an editor, which stays on your host; cofferdam ssh-config brings it in")
		default:
			c.leaveOut(key, key.text, "%s", devReason(key.text))
		}
	}
	for _, key := range []string{"onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand"} {
		if value := root.getValue(key); value != nil {
			c.convertHook(key, value)
		}
	}
}

// devReason is why a key is not kept.
func devReason(key string) string {
	switch key {
	case "name", "$schema":
		return "it is for people and their editors"
	case "image", "build", "dockerFile", "context", "dockerComposeFile", "service", "runServices":
		return "a sandbox starts from a template, and runs no image; name one with template, and see cofferdam template list"
	case "workspaceFolder", "workspaceMount":
		return "the copy of the project is at " + inside
	case "privileged", "capAdd", "securityOpt", "runArgs":
		return "a sandbox is never made weaker"
	case "init", "overrideCommand", "shutdownAction", "waitFor", "userEnvProbe", "overrideFeatureInstallOrder":
		return "a sandbox has an init of its own, and ends with its command"
	case "containerUser", "remoteUser", "updateRemoteUserUID":
		return "commands run as the sandbox's own user"
	case "initializeCommand":
		return "it would run on your machine; nothing of the settings does"
	case "postAttachCommand":
		return "nobody attaches; put it into hooks if it has to run"
	case "hostRequirements":
		return "it asks for a machine; limits are in the policy's defaults"
	case "secrets":
		return "secrets go to the daemon and their hosts by name: docs/network.md"
	case "portsAttributes", "otherPortsAttributes":
		return "ports have no more than a number"
	}
	return "it is not known here"
}

// convertPorts keeps those that are brought to the host.
func (c *converter) convertPorts(what string, n *node) {
	all := []*node{n}
	if n.kind == array {
		all = n.items
	}
	for _, e := range all {
		if !c.wantKind(e, "an element of "+what, number, textKind) {
			continue
		}
		port := e.text
		if host, rest, found := strings.Cut(port, ":"); found && host == "localhost" {
			port = rest
		} else if found && !isPort(host) {
			c.leaveOut(e, what+" "+e.text, "it is a port of another container or address, and there is none")
			continue
		}
		first, second, _ := strings.Cut(port, ":")
		if !isPort(first) || second != "" && !isPort(second) {
			c.failAt(e, "%s: %q is no port", what, clipText(e.text))
			continue
		}
		if !slices.Contains(c.made.Ports, port) {
			c.made.Ports = append(c.made.Ports, port)
		}
	}
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n < 1<<16 && strconv.Itoa(n) == s
}

// convertEnvironment keeps variables whose values are known.
func (c *converter) convertEnvironment(what string, n *node) {
	if !c.wantKind(n, what, object) {
		return
	}
	for key, value := range n.members() {
		if value.kind == null {
			c.leaveOut(key, what+"."+key.text, "null takes a variable away, and there is none")
			continue
		}
		if !c.wantKind(value, what+"."+key.text, textKind) {
			continue
		}
		known, unknown := c.filled(value.text)
		switch {
		case key.text == "" || strings.ContainsAny(key.text, "=\x00"):
			c.failAt(key, "%s: %q is no variable", what, clipText(key.text))
		case unknown != "":
			c.leaveOut(key, what+"."+key.text, "%s is known to the tool of the dev container alone", clipText(unknown))
		default:
			if c.made.Environment == nil {
				c.made.Environment = map[string]string{}
			}
			c.made.Environment[key.text] = known
		}
	}
}

// variable is one that is filled in before a value is used. Others are the shell's.
var variable = regexp.MustCompile(`\$\{(?:localEnv|env|containerEnv|localWorkspaceFolder|localWorkspaceFolderBasename|containerWorkspaceFolder|containerWorkspaceFolderBasename|devcontainerId)(?::[^}]*)?\}`)

// filled is a text with its variables filled in; unknown is the first that can't be.
func (c *converter) filled(s string) (known, unknown string) {
	known = variable.ReplaceAllStringFunc(s, func(v string) string {
		switch v {
		case "${containerWorkspaceFolder}":
			return inside
		case "${containerWorkspaceFolderBasename}":
			return strings.TrimPrefix(inside, "/")
		}
		if unknown == "" {
			unknown = v
		}
		return v
	})
	return known, unknown
}

// convertHook has a command run before each run's own.
func (c *converter) convertHook(what string, n *node) {
	switch n.kind {
	case object:
		if len(n.items) > 1 {
			c.noteAt(n, what, "its commands run one after another")
		}
		for _, e := range n.items {
			if c.wantKind(e, "a command of "+what, textKind, array) {
				c.convertHook(what, e)
			}
		}
		return
	case textKind, array:
	default:
		c.wantKind(n, what, textKind, array, object)
		return
	}
	line := n.text
	if n.kind == array {
		var words []string
		for _, e := range c.textsOf(n, what) {
			words = append(words, quoted(e.text))
		}
		line = strings.Join(words, " ")
	}
	line, unknown := c.filled(line)
	switch {
	case strings.TrimSpace(line) == "":
	case unknown != "":
		c.leaveOut(n, what, "%s is known to the tool of the dev container alone", clipText(unknown))
	default:
		c.made.Hooks.Start = append(c.made.Hooks.Start, line)
		c.noteAt(n, what, "runs before the command of each run, which has a new sandbox each time")
	}
}

// quoted is a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
