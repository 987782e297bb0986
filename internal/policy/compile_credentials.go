package policy

import "strings"

func (c *compiler) credentials(v value) {
	o := c.object(v, keysOf[credentialsKeys]()...)
	if o == nil {
		return
	}
	if f, given := o.fields["mode"]; given {
		if _, ok := c.word(f, "just_in_time"); ok {
			c.open(f, "no credential is handed out yet: the sandbox holds none")
		}
	}
	if f, given := o.fields["inject"]; given {
		elements, _ := c.list(f)
		for _, e := range elements {
			c.injection(e)
		}
		if len(elements) > 0 {
			c.open(f, "no credential is injected yet: what is sent to these hosts goes without one")
		}
	}
	if f, given := o.fields["secret_scanning"]; given {
		switch on, ok := c.boolean(f); {
		case ok && on:
			c.open(f, "what leaves the sandbox is not scanned for secrets yet")
		case ok:
			c.says(f, "what leaves the sandbox is not scanned for secrets")
		}
	}
}

// injection is checked although nothing injects yet, so that a slip shows now.
func (c *compiler) injection(v value) {
	o := c.object(v, keysOf[injectKeys]()...)
	if o == nil {
		return
	}
	for _, key := range []string{"host", "header", "secret"} {
		f, given := o.fields[key]
		if !given {
			c.fail(v.node, "%s needs host, header and secret; %s is missing", v.path, key)
			continue
		}
		s, ok := c.text(f)
		if !ok {
			continue
		}
		if key == "host" {
			if _, wrong := parseNetworkPattern(s); wrong != "" {
				c.fail(f.node, "%s: %q %s", f.path, plain(s, 60), wrong)
			}
			continue
		}
		if !isToken(s) {
			c.fail(f.node, "%s: %q may have letters, digits, - and _ only", f.path, plain(s, 60))
		}
	}
}

func isToken(s string) bool {
	return len(s) <= 128 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
