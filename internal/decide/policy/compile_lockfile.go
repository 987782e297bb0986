package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func (c *compiler) lockfile(v value) {
	o := c.object(v, keysOf[lockfileKeys]()...)
	if o == nil {
		return
	}
	rules := LockRules{Given: true, Mode: LockFrozen}
	if f, given := o.fields["mode"]; given {
		if s, ok := c.readWord(f, string(LockFrozen), string(LockPrefer)); ok {
			rules.Mode = LockMode(s)
			c.explainEnforced(f, "%s", lockMeaning(rules.Mode))
		}
	}
	if f, given := o.fields["trust"]; given {
		if rules.Trust, _ = c.boolean(f); rules.Trust {
			c.explainEnforced(f, "what a lockfile pins needs no entry in allowed_packages; all else still applies to it")
		} else {
			c.explainEnforced(f, "what a lockfile pins must be allowed besides")
		}
	}
	if f, given := o.fields["files"]; given {
		rules.Files = c.readLockfiles(f)
	}
	c.policy.packages.lock = rules
	c.explainLock(v, rules)
}

// readLockfiles reads the names of lockfiles and notes their ecosystems.
func (c *compiler) readLockfiles(v value) []string {
	elements, ok := c.readList(v)
	if ok && len(elements) == 0 {
		c.failAt(v.node, "packages.lockfile.files is empty; name a lockfile, or leave files out and give them with --lockfile")
	}
	var files []string
	for _, e := range elements {
		s, ok := c.readText(e)
		if !ok {
			continue
		}
		ecosystem, known := pkgref.LockfileOf(s[strings.LastIndexByte(s, '/')+1:])
		switch {
		case !known:
			c.failAt(e.node, "%s: %q is not a known lockfile; known lockfiles: %s", e.path, plainASCII(s, 60), pkgref.KnownLockfiles())
		case slices.Contains(files, s):
			c.failAt(e.node, "%s: %s is named twice", e.path, plainASCII(s, 60))
		default:
			c.policy.packages.locked[ecosystem] = true
			files = append(files, s)
		}
	}
	return files
}

func (c *compiler) explainLock(v value, rules LockRules) {
	which := "given with --lockfile; a run without one is refused"
	if len(rules.Files) > 0 {
		which = plainASCII(strings.Join(rules.Files, ", "), 80)
	}
	c.explainEnforced(v, "%s; the lockfiles are %s", lockMeaning(rules.Mode), which)
}

func lockMeaning(mode LockMode) string {
	if mode == LockPrefer {
		return "a package that a lockfile names is held to its pins, others are judged as ever"
	}
	return "nothing outside of the lockfiles is allowed in their ecosystems"
}
