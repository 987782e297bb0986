package policy

import (
	"path"
	"strings"
)

// filesystem reads a sandbox configuration's form: a workspace in the sandbox, and mounts.
func (c *compiler) filesystem(v value) {
	o := c.object(v, keysOf[filesystemKeys]()...)
	if o == nil {
		return
	}
	w := &c.policy.workspace
	if f, given := o.fields["workspace"]; given {
		if s, ok := c.sandboxPath(f); ok {
			w.Path = s
			c.explainEnforced(f, "commands start in %s, which is made in the sandbox", plainASCII(s, 60))
		}
	}
	if f, given := o.fields["mode"]; given {
		if s, ok := c.readWord(f, "read_only", "read_write"); ok {
			w.ReadOnly = s == "read_only"
			c.explainEnforced(f, "the workspace is %s", strings.ReplaceAll(s, "_", "-"))
		}
	}
	if f, given := o.fields["host_mounts"]; given && c.claimThing("mounts", f) {
		c.hostMounts(f)
	}
}

func (c *compiler) hostMounts(v value) {
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	if len(elements) == 0 {
		c.explainEnforced(v, "nothing of the host is visible in the sandbox")
	}
	for _, e := range elements {
		o := c.object(e, keysOf[hostMountKeys]()...)
		if o == nil {
			continue
		}
		source, hasSource := o.fields["source"]
		destination, hasDestination := o.fields["destination"]
		if !hasSource || !hasDestination {
			c.failAt(e.node, "%s needs a source on the host and a destination in the sandbox", e.path)
			continue
		}
		m := Mount{}
		var okS, okD bool
		m.Source, okS = c.hostPath(source)
		m.Destination, okD = c.sandboxPath(destination)
		if f, given := o.fields["mode"]; given {
			s, _ := c.readWord(f, "read_only", "read_write")
			m.ReadWrite = s == "read_write"
		}
		if okS && okD {
			c.readMount(e, m)
		}
	}
}

// sandboxMounts reads an agent-sandbox policy's form; its places in the sandbox are fixed.
func (c *compiler) sandboxMounts(v value) {
	o := c.object(v, keysOf[sandboxMountsKeys]()...)
	if o == nil || !c.claimThing("mounts", v) {
		return
	}
	if f, given := o.fields["input_dir"]; given && !isNull(f) {
		if s, ok := c.hostPath(f); ok {
			c.readMount(f, Mount{Source: s, Destination: "/input"})
		}
	}
	if f, given := o.fields["output_dir"]; given && !isNull(f) {
		if s, ok := c.hostPath(f); ok {
			c.readMount(f, Mount{Source: s, Destination: "/output", ReadWrite: true})
		}
	}
}

func (c *compiler) readMount(v value, m Mount) {
	for _, other := range c.policy.mounts {
		if other.Destination == m.Destination {
			c.failAt(v.node, "%s: two mounts at %s", v.path, plainASCII(m.Destination, 60))
			return
		}
	}
	c.policy.mounts = append(c.policy.mounts, m)
	how := "read-only"
	if m.ReadWrite {
		how = "read-write"
	}
	c.explainEnforced(v, "the host's %s is at %s, %s", plainASCII(m.Source, 80), plainASCII(m.Destination, 60), how)
}

// hostPath is absolute and clean, and no directory that gives the host away.
// The host resolves links and checks again.
func (c *compiler) hostPath(v value) (string, bool) {
	s, ok := c.absolute(v)
	if !ok {
		return "", false
	}
	for _, root := range []string{"/proc", "/sys", "/dev"} {
		if s == "/" || s == root || strings.HasPrefix(s, root+"/") {
			c.failAt(v.node, "%s: %s of the host is never mounted", v.path, plainASCII(s, 60))
			return "", false
		}
	}
	return s, true
}

// sandboxPath is absolute and clean, and not where the sandbox's own
// machinery lives.
func (c *compiler) sandboxPath(v value) (string, bool) {
	s, ok := c.absolute(v)
	if !ok {
		return "", false
	}
	for _, root := range []string{"/proc", "/sys", "/dev", "/.cofferdam", "/run/cofferdam", "/etc"} {
		if s == "/" || s == root || strings.HasPrefix(s, root+"/") {
			c.failAt(v.node, "%s: %s of the sandbox is its own", v.path, plainASCII(s, 60))
			return "", false
		}
	}
	return s, true
}

func (c *compiler) absolute(v value) (string, bool) {
	s, ok := c.readText(v)
	if !ok {
		return "", false
	}
	clean := path.Clean(s)
	if !path.IsAbs(s) || (clean != s && clean+"/" != s) || strings.ContainsAny(s, "\x00\n\r:") {
		c.failAt(v.node, "%s must be an absolute path without .., // or a colon, and is %q", v.path, plainASCII(s, 80))
		return "", false
	}
	return clean, true
}
