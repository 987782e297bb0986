package foreign

// convertSRT converts settings of sandbox-runtime.
func (c *converter) convertSRT(root *node) {
	for key, value := range root.members() {
		switch key.text {
		case "network":
			if c.wantKind(value, "network", object) {
				c.srtNetwork(value)
			}
		case "filesystem":
			if c.wantKind(value, "filesystem", object) {
				c.srtFiles(value)
			}
		case "credentials":
			if c.wantKind(value, "credentials", object) {
				c.srtCredentials(value)
			}
		default:
			c.leaveOut(key, key.text, "%s", srtReason(key.text))
		}
	}
	if root.getValue("filesystem") == nil {
		c.project(false)
	}
	for _, e := range c.unreadable(root) {
		c.unread(e)
	}
	c.writeMounts()
}

// srtReason is why a key is not kept.
func srtReason(key string) string {
	switch key {
	case "ignoreViolations":
		return "what is refused is recorded, and nothing has to be kept quiet"
	case "enableWeakerNestedSandbox", "enableWeakerNetworkIsolation":
		return "a sandbox is never made weaker"
	case "allowAppleEvents", "windows":
		return "it is for another system than Linux"
	case "allowPty":
		return "a sandbox has terminals of its own"
	case "ripgrep", "seccomp", "bwrapPath", "socatPath", "javaAgentJarPath":
		return "it is a program of srt, which is not used here"
	case "mandatoryDenySearchDepth":
		return "a run works in a copy, and cofferdam apply asks before it brings over what your programs run"
	case "git":
		return "the project is the sandbox user's own inside"
	}
	return "srt does not read it"
}

func (c *converter) srtCredentials(n *node) {
	for key, value := range n.members() {
		switch {
		case key.text == "files" && c.wantKind(value, "credentials.files", array):
			for _, e := range value.items {
				c.srtSecret(e, "path")
			}
		case key.text == "envVars" && c.wantKind(value, "credentials.envVars", array):
			for _, e := range value.items {
				c.srtSecret(e, "name")
			}
		case key.text != "files" && key.text != "envVars":
			c.leaveOut(key, "credentials."+key.text, "secrets go to the daemon and their hosts by name: docs/network.md")
		}
	}
}

// srtSecret is a file or a variable that the sandbox must not see. Files are hidden with the
// others that must not be read.
func (c *converter) srtSecret(n *node, key string) {
	name, mode := n.getValue(key), n.getValue("mode")
	if name == nil || name.kind != textKind || mode == nil || mode.kind != textKind {
		c.failAt(n, "a secret needs a %s and a mode, and both are texts", key)
		return
	}
	switch {
	case mode.text == "mask":
		c.leaveOut(n, name.text, "its placeholder; give the daemon the secret by name, which hosts get in the sandbox's place: docs/network.md")
	case key == "name":
		c.noteAt(n, name.text, "a sandbox gets no variable of yours")
	}
}
