package policy

import (
	"strings"
)

// compileVulnerabilities reads packages.vulnerabilities.
func compileVulnerabilities(c *compiler, v value) {
	o := c.object(v, keysOf[vulnerabilityKeys]()...)
	if o == nil {
		return
	}
	rules := vulnerabilityRules{given: true, unknown: Deny}
	deny, denies := o.fields["deny"]
	if denies {
		rules.deny = compileSeverity(c, deny)
		c.explainEnforced(deny, "a release with a known vulnerability of severity %s is denied, whatever admits it", orHigher(rules.deny))
	}
	hold, holds := o.fields["hold"]
	if holds {
		rules.hold, rules.unknown = compileSeverity(c, hold), Hold
		unless := ""
		if denies {
			unless = ", unless it is denied for that"
		}
		c.explainEnforced(hold, "a release with a known vulnerability of severity %s waits for a person%s", orHigher(rules.hold), unless)
	}
	switch {
	case !denies && !holds:
		c.failAt(v.node, "%s needs a level at which it denies or holds; write like { deny: critical, hold: high }", v.path)
	case denies && holds && rules.deny != 0 && rules.hold >= rules.deny:
		c.failAt(hold.node, "%s is %s, and deny is %s: nothing is left to hold; write a lower level", hold.path, rules.hold, rules.deny)
	}
	if f, given := o.fields["unknown"]; given {
		rules.unknown = c.effect(f)
	}
	at := v
	if f, given := o.fields["unknown"]; given {
		at = f
	}
	c.explainEffect(at, rules.unknown,
		"a known vulnerability whose severity nobody tells is let through",
		"a release with a known vulnerability whose severity nobody tells waits for a person",
		"a release with a known vulnerability whose severity nobody tells is denied")
	c.explainEnforced(v, "until known vulnerabilities of an ecosystem are imported (cofferdam advisory import), every package of it is denied")
	c.policy.packages.vulnerabilities = rules
}

func compileSeverity(c *compiler, v value) Severity {
	word, ok := c.readWord(v, severityWords()[SeverityLow:]...)
	if !ok {
		return SeverityUnknown
	}
	s, _ := ParseSeverity(word)
	return s
}

func orHigher(s Severity) string {
	if s == SeverityCritical {
		return s.String()
	}
	return s.String() + " or higher"
}

// maxAccepted bounds what one entry accepts.
const maxAccepted = 100

// compileAccepted reads the ids that an entry accepts.
func compileAccepted(c *compiler, v value) []string {
	elements, ok := c.readList(v)
	if ok && (len(elements) == 0 || len(elements) > maxAccepted) {
		c.failAt(v.node, "%s must name from 1 to %d vulnerabilities, and names %d", v.path, maxAccepted, len(elements))
		return nil
	}
	var ids []string
	for _, item := range elements {
		id, ok := c.readText(item)
		switch {
		case !ok:
		case !isAdvisoryID(id):
			c.failAt(item.node, "%s: %q is no id of a vulnerability; write like \"CVE-2021-33503\"", item.path, plainASCII(id, 60))
		default:
			ids = append(ids, id)
		}
	}
	return ids
}

// isAdvisoryID tells what can be an id of a record: letters, digits and -_.: with a dash.
func isAdvisoryID(s string) bool {
	const longest = 64
	return len(s) <= longest && strings.Contains(s, "-") &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == ""
}
