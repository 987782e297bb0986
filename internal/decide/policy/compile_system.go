package policy

// BySystem tells that packages.system decided.
const BySystem ResolvedBy = "system"

// ruleSystem is about packages of the distribution.
const ruleSystem = "packages.system"

// System judges the packages of the distribution, which builds of templates install with
// apt. No list names one, so all are judged alike.
func (p *Policy) System() Decision {
	decided := p.ownSystem()
	for _, by := range p.narrowed {
		decided = theStricter(decided, by.ownSystem())
	}
	return decided
}

func (p *Policy) ownSystem() Decision {
	d := Decision{Effect: Deny, Rule: ruleSystem, ResolvedBy: BySystem, Suggest: "packages:\n  system: allow\n"}
	switch p.packages.system {
	case Allow:
		return Decision{Effect: Allow, Rule: ruleSystem, ResolvedBy: BySystem, Reason: "packages of the distribution are allowed in a build; packages.system is allow"}
	case Deny:
		d.Reason = "packages of the distribution are denied; packages.system is deny"
	default:
		d.Reason = "packages of the distribution are denied; packages.system is not set"
	}
	return d
}

// compileSystem reads packages.system.
func compileSystem(c *compiler, v value) {
	word, ok := c.readWord(v, string(Deny), string(Allow))
	if !ok {
		return
	}
	c.policy.packages.system = Effect(word)
	if Effect(word) == Allow {
		c.explainEnforced(v, "builds of templates may install any package of the distribution; their scripts run as root in the build's sandbox")
		return
	}
	c.explainEnforced(v, "builds of templates install no package of the distribution")
}
