package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// maxEntries of one name: every version of it is judged by each.
const maxEntries = 100

func (c *compiler) allowedPackages(v value) {
	c.packageLists(v, func(ecosystem pkgref.Ecosystem, item value) { c.allowedEntry(ecosystem, item) })
}

func (c *compiler) blockedPackages(v value) {
	c.packageLists(v, func(ecosystem pkgref.Ecosystem, item value) { c.blockedEntry(ecosystem, item) })
}

// packageLists reads a mapping from ecosystems to lists of entries.
func (c *compiler) packageLists(v value, read func(pkgref.Ecosystem, value)) {
	known := make([]string, 0, 4)
	for _, e := range pkgref.Ecosystems() {
		known = append(known, string(e))
	}
	o := c.object(v, known...)
	if o == nil {
		return
	}
	if len(o.fields) == 0 {
		c.explainEnforced(v, "an empty list: it names no package")
	}
	for _, e := range pkgref.Ecosystems() {
		list, given := o.fields[string(e)]
		if !given {
			continue
		}
		elements, ok := c.readList(list)
		if ok && len(elements) == 0 {
			c.explainEnforced(list, "an empty list: it names no package")
		}
		for _, item := range elements {
			read(e, item)
		}
	}
}

func (c *compiler) allowedEntry(ecosystem pkgref.Ecosystem, v value) {
	o := c.object(v, keysOf[allowedKeys]()...)
	if o == nil {
		return
	}
	name, e, ok := c.readEntry(ecosystem, o)
	if f, given := o.fields["max_version"]; given {
		if s, isText := c.readText(f); isText {
			e.limitText = s
			if e.limit, isText = parseLimit(ecosystem, s); !isText {
				c.failAt(f.node, "%s: %q is no cap for %s; write like \"2.x\" or a whole version", f.path, plainASCII(s, 40), ecosystem)
			}
		}
	}
	compileAdmissions(c, o, &e)
	if !ok {
		return
	}
	if len(e.extras) > 0 && !e.withDependencies {
		c.failAt(v.node, "%s: the extras of %s say what with_dependencies admits, which it lacks; write with_dependencies: true", v.path, plainASCII(name, 60))
		return
	}
	key := packageKey{ecosystem, name}
	if len(c.policy.packages.allowed[key]) == maxEntries {
		c.failAt(v.node, "%s: %s has more than %d entries", v.path, plainASCII(name, 60), maxEntries)
		return
	}
	for _, other := range c.policy.packages.allowed[key] {
		if other.versionText == e.versionText && other.limitText == e.limitText && slices.Equal(other.extras, e.extras) {
			c.failAt(v.node, "%s: %s is already on line %d with the same versions", v.path, plainASCII(name, 60), other.line)
			return
		}
	}
	c.policy.packages.allowed[key] = append(c.policy.packages.allowed[key], e)
	c.explainEnforced(v, "%s", allowedMeaning(name, e))
}

// compileAdmissions reads what an entry admits beside its versions.
func compileAdmissions(c *compiler, o *object, e *listEntry) {
	if f, given := o.fields["with_dependencies"]; given {
		e.withDependencies, _ = c.boolean(f)
	}
	if f, given := o.fields["prereleases"]; given {
		e.prereleases, _ = c.boolean(f)
	}
	if f, given := o.fields["install_scripts"]; given {
		e.installScripts, _ = c.boolean(f)
	}
	if f, given := o.fields["accepted_vulnerabilities"]; given {
		e.accepted = compileAccepted(c, f)
	}
}

func allowedMeaning(name string, e listEntry) string {
	var b strings.Builder
	b.WriteString(plainASCII(name, 60) + " is allowed")
	switch leading, wild := cutWildcard(e.limitText); {
	case e.limitText == "":
	case wild:
		b.WriteString(", up to and with every " + leading + ".*")
	default:
		b.WriteString(", up to exactly " + plainASCII(e.limitText, 40))
	}
	if e.versionText != "" {
		b.WriteString(", in versions " + plainASCII(e.versionText, 60))
	}
	if e.limitText == "" && e.versionText == "" {
		b.WriteString(", in every version")
	}
	if e.prereleases {
		b.WriteString(", pre-releases too")
	} else if e.versions.SelectsPreReleases() {
		b.WriteString(", no pre-releases but those that the range names")
	} else {
		b.WriteString(", no pre-releases")
	}
	if e.withDependencies {
		b.WriteString(", with what its verified metadata requires")
	}
	if len(e.extras) > 0 {
		b.WriteString(", also for " + extrasText(e.extras))
	}
	if e.installScripts {
		b.WriteString(", with its install scripts")
	}
	if len(e.accepted) > 0 {
		b.WriteString(", with the vulnerabilities " + plainASCII(strings.Join(e.accepted, ", "), 100))
	}
	return b.String()
}

func (c *compiler) blockedEntry(ecosystem pkgref.Ecosystem, v value) {
	o := c.object(v, keysOf[blockedKeys]()...)
	if o == nil {
		return
	}
	name, e, ok := c.readEntry(ecosystem, o)
	if !ok {
		return
	}
	key := packageKey{ecosystem, name}
	if len(c.policy.packages.blocked[key]) == maxEntries {
		c.failAt(v.node, "%s: %s has more than %d entries", v.path, plainASCII(name, 60), maxEntries)
		return
	}
	if len(e.extras) > 0 {
		c.failAt(v.node, "%s: an extra of %s can't be blocked; name the package that it brings", v.path, plainASCII(name, 60))
		return
	}
	c.policy.packages.blocked[key] = append(c.policy.packages.blocked[key], e)
	if e.versionText == "" {
		c.explainEnforced(v, "%s is denied in every version, whatever else says otherwise", plainASCII(name, 60))
		return
	}
	c.explainEnforced(v, "%s is denied in versions %s and their pre-releases, whatever else says otherwise", plainASCII(name, 60), plainASCII(e.versionText, 60))
}

// readEntry reads what the two lists share: a canonical name, of Python with extras, and a
// range.
func (c *compiler) readEntry(ecosystem pkgref.Ecosystem, o *object) (name string, e listEntry, ok bool) {
	e.line = o.node.Line
	f, given := o.fields["name"]
	if !given {
		c.failAt(o.node, "%s needs a name", o.path)
		return "", e, false
	}
	written, ok := c.readText(f)
	if !ok {
		return "", e, false
	}
	bare, extras, isName := written, []string(nil), true
	if ecosystem.Traits().Extras {
		bare, extras, isName = pkgref.CutExtras(written)
	}
	name, err := pkgref.CanonicalName(ecosystem, bare)
	if err != nil || !isName {
		c.failAt(f.node, "%s: %q is not a %s package name", f.path, plainASCII(written, 60), ecosystem)
		return "", e, false
	}
	e.extras = extras
	if f, given := o.fields["version"]; given {
		s, isText := c.readText(f)
		if !isText {
			return "", e, false
		}
		e.versionText = s
		if e.versions, isText = pkgref.ParseRange(ecosystem, s); !isText || strings.TrimSpace(s) == "" {
			c.failAt(f.node, "%s: %q is no version specifier for %s; write like %q", f.path, plainASCII(s, 60), ecosystem, ecosystem.Traits().SpecifierExample)
			return "", e, false
		}
	}
	return name, e, true
}
