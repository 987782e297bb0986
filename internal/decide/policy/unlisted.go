package policy

import (
	"slices"
	"strings"
)

// ruleNetworkUnlisted is of names that no list has and that a person may open.
const ruleNetworkUnlisted = "network_unlisted"

// askedPorts are those on which a person may open a name.
func askedPorts() []int { return []int{80, 443} }

// nobodysSuffixes end names that lead into private networks, to this machine, or nowhere:
// no person is asked about one. That their addresses are public is for who dials to see.
func nobodysSuffixes() []string {
	return []string{
		".alt", ".arpa", ".corp", ".home", ".internal", ".intranet", ".invalid", ".lan", ".local", ".localdomain", ".localhost", ".onion", ".private",
	}
}

// mayBeAsked reports whether a person can be asked about a name: it is one that a list
// could have, with a domain of its own.
func mayBeAsked(name string) bool {
	pattern, wrong := parseNetworkPattern(name)
	if wrong != "" || pattern.Wildcard || pattern.Port != 0 || pattern.Host != name || !strings.Contains(name, ".") {
		return false
	}
	return !slices.ContainsFunc(nobodysSuffixes(), func(s string) bool { return strings.HasSuffix(name, s) })
}

// mayOpen reports whether a name that the policy does not list can be open on a port all the
// same: since a person says so, or since the policy only observes. A name whose requests it
// judges is none: it would be open to all requests.
func mayOpen(p *Policy, name string, port int) bool {
	return (p.unlisted == Hold || p.observes) && (port == 0 || slices.Contains(askedPorts(), port)) && mayBeAsked(name) &&
		!slices.ContainsFunc(p.network.entriesFor(name), hostEntry.judged)
}

// holdDecision turns d, the refusal of a name that no list has, into one that waits for a person.
func holdDecision(p *Policy, d Decision, name string, port int) Decision {
	if p.unlisted != Hold || !mayOpen(p, name, port) {
		return d
	}
	d.Effect, d.Rule = Hold, ruleNetworkUnlisted
	d.Reason = reason("%s is not on the policy's network_allowlist and waits for approval; network_unlisted is hold", plainASCII(name, 60))
	return d
}

// withAsked adds to the ports on which a name is listed those on which it can be open all the
// same, as far as a sandbox has room to listen on them.
func withAsked(p *Policy, name string, listed []int) []int {
	if !mayOpen(p, name, 0) {
		return listed
	}
	for _, port := range askedPorts() {
		if !slices.Contains(listed, port) && len(listed) < maxHostPorts {
			listed = append(listed, port)
		}
	}
	slices.Sort(listed)
	return listed
}

// AnswerHost weighs people's answers about a name on a port that would wait, by d. A
// denial counts before an approval, and where the policy only observes.
func AnswerHost(d Decision, name string, answers []Approval) Decision {
	return answerBy(d, name, answers)
}

// answerBy does what AnswerHost does, for whatever it is that waits, of which all answers are.
func answerBy(d Decision, what string, answers []Approval) Decision {
	if d.Effect != Hold && d.Would == "" {
		return d
	}
	var approved *Approval
	for i, a := range answers {
		switch {
		case a.Denied:
			refusal := Decision{Effect: Deny, Rule: ruleApproval, ResolvedBy: ByApproval, Approval: a.ID}
			refusal.Reason = reason("%s was denied by %s (%s)", plainASCII(what, 60), plainASCII(a.By, 30), plainASCII(a.ID, 30))
			if a.Reason != "" {
				refusal.Reason = reason("%s: %s", refusal.Reason, plainASCII(a.Reason, maxReason))
			}
			return refusal
		case approved == nil:
			approved = &answers[i]
		}
	}
	if approved == nil || d.Would == Deny {
		return d
	}
	return Decision{
		Effect: Allow, Rule: ruleApproval, ResolvedBy: ByApproval, Approval: approved.ID,
		Reason: reason("%s was approved by %s (%s)", plainASCII(what, 60), plainASCII(approved.By, 40), plainASCII(approved.ID, 30)),
	}
}

// compileUnlisted reads what becomes of names that no list has.
func compileUnlisted(c *compiler, v value) {
	switch s, _ := c.readWord(v, "deny", "hold"); s {
	case "deny":
		c.explainEnforced(v, "a name that the policy does not list is refused")
	case "hold":
		if before, said := c.claims["network_default"]; said {
			c.failAt(v.key, "network_unlisted is hold, and %s on line %d denies the same names; keep one of them", before.path, before.key.Line)
			return
		}
		c.claims["network_default"], c.policy.unlisted = v, Hold
		c.explainEnforced(v, "a person is asked about a name that the policy does not list, on ports 80 and 443; what waits does as packages.on_hold says")
	}
}
