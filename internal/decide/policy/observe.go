package policy

import (
	"slices"
	"strings"
)

// The words of mode.
const (
	modeEnforce = "enforce"
	modeObserve = "observe"
)

// ByObserving is what let something through that the policy would refuse: in records of what
// happened then.
const ByObserving ResolvedBy = "observe"

// RuleMode is the rule of such records.
const RuleMode = "mode"

// Observes reports whether a policy's document, or one that narrows it, has mode: observe: what
// only its own choices refuse is then let through, by a Decision that says what it Would
// have been. A refusal by another document stays one.
func Observes(p *Policy) bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.observes })
}

// observe is d, a decision by p; or, if that only observes and nothing but its own choice refuses,
// the allowance that records that.
func observe(p *Policy, d Decision) Decision {
	if p.observes && isOwnChoice(d) {
		d.Would, d.Effect = d.Effect, Allow
	}
	return d
}

// isOwnChoice tells whether a decision is a refusal or a hold that another document, just as
// good, would not make. The rules are listed, so that one that is not is enforced: what is
// known to be harmful, somebody's explicit no, a private name from elsewhere, bytes that are
// not those that a lockfile names, protocols, and what no document can allow.
func isOwnChoice(d Decision) bool {
	if d.Alarm || d.Effect != Deny && d.Effect != Hold {
		return false
	}
	switch d.Rule {
	case ruleDefault, rulePrereleases, ruleToolchains, ruleSimilar, ruleLockfile, ruleSdist, ruleAge, ruleScripts, ruleHashes, ruleVulnerabilities,
		ruleNetworkDefault, ruleNetworkUnlisted:
		return true
	}
	return d.ResolvedBy == ByAllowlist && strings.HasPrefix(d.Rule, "allowed_packages.")
}

// compileMode reads mode.
func compileMode(c *compiler, v value) {
	switch word, _ := c.readWord(v, modeEnforce, modeObserve); word {
	case modeEnforce:
		c.explainEnforced(v, "what this document refuses is refused")
	case modeObserve:
		c.policy.observes = true
		c.explainEnforced(v, "THIS DOCUMENT ONLY OBSERVES: packages and names that it would refuse or hold are let through, and recorded as would_deny and would_hold; "+
			"blocked_packages, malware, private names and addresses, wrong bytes, rules and limits are enforced all the same")
	}
}
