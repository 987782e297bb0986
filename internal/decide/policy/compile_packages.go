package policy

import "strings"

func (c *compiler) packages(v value) {
	o := c.object(v, keysOf[packagesKeys]()...)
	if o == nil {
		return
	}
	p := &c.policy.packages
	if f, given := o.fields["default"]; given {
		p.byDefault, p.defaultGiven = c.effect(f), true
		switch p.byDefault {
		case Allow:
			c.explainEnforced(f, "a package that no list names is allowed")
		case Hold:
			c.explainEnforced(f, "a package that no list names waits for a person")
		case Deny:
			c.explainEnforced(f, "a package that no list names is denied")
		}
	}
	c.artifacts(o)
	c.classes(o)
	if f, given := o.fields["on_hold"]; given {
		c.onHold(f)
	}
	c.releaseAge(o)
	if f, given := o.fields["system"]; given {
		compileSystem(c, f)
	}
	if f, given := o.fields["unaccounted"]; given {
		c.unaccounted(f)
	}
	if f, given := o.fields["lockfile"]; given {
		c.lockfile(f)
	}
}

// artifacts reads what judges files.
func (c *compiler) artifacts(o *object) {
	p := &c.policy.packages
	if f, given := o.fields["sdist"]; given {
		compileSdist(c, f)
	}
	if f, given := o.fields["install_scripts"]; given {
		compileScripts(c, f)
	}
	if f, given := o.fields["install_in"]; given {
		compileInstallIn(c, f)
	}
	if f, given := o.fields["require_hashes"]; given {
		if p.hashes, _ = c.boolean(f); p.hashes {
			c.explainEnforced(f, "a file is denied unless its upstream, or a witness, gives a strong digest of it")
		} else {
			c.explainEnforced(f, "a file without a strong digest is allowed; the first bytes that are seen of it count for ever")
		}
	}
}

// classes reads what judges names that no list has.
func (c *compiler) classes(o *object) {
	p := &c.policy.packages
	if f, given := o.fields["toolchains"]; given {
		p.toolchains = c.effect(f)
		c.explainEffect(f, p.toolchains,
			"package managers and compilers that tools fetch by themselves are allowed",
			"package managers and compilers that tools fetch by themselves wait for a person",
			"package managers and compilers that tools fetch by themselves are denied")
	}
	if f, given := o.fields["vulnerabilities"]; given {
		compileVulnerabilities(c, f)
	}
	if f, given := o.fields["similar_names"]; given {
		p.similar = c.effect(f)
		c.explainEffect(f, p.similar,
			"a name near to a popular package's is judged like any other",
			"a name near to a popular package's waits for a person, unless it is on the allowlist or a dependency",
			"a name near to a popular package's is denied, unless it is on the allowlist or a dependency")
	}
}

func (c *compiler) explainEffect(v value, e Effect, allow, hold, deny string) {
	switch e {
	case Allow:
		c.explainEnforced(v, "%s", allow)
	case Hold:
		c.explainEnforced(v, "%s", hold)
	case Deny:
		c.explainEnforced(v, "%s", deny)
	}
}

// effect reads allow, deny or hold.
func (c *compiler) effect(v value) Effect {
	if s, ok := c.readWord(v, string(Deny), string(Hold), string(Allow)); ok {
		return Effect(s)
	}
	return ""
}

func (c *compiler) onHold(v value) {
	s, ok := c.readText(v)
	if !ok {
		return
	}
	p := &c.policy.packages
	wait, isWait := strings.CutPrefix(s, "wait ")
	switch {
	case s == "fail":
		p.onHold = HoldFail
		c.explainEnforced(v, "what waits for a person fails at once, with the request's id; a retry meets the answer")
	case s == "freeze":
		p.onHold = HoldFreeze
		c.explainEnforced(v, "while something waits for a person the whole sandbox is written to disk; then the same install goes on or fails")
	case isWait:
		maxWait, ok := parseDuration(wait)
		if !ok || maxWait <= 0 {
			c.failAt(v.node, "packages.on_hold needs a duration after wait, like \"wait 20s\", and has %q", plainASCII(wait, 40))
			return
		}
		p.onHold, p.maxWait = HoldWait, maxWait
		c.explainEnforced(v, "what waits for a person waits for up to %s, then fails with the request's id; a retry meets the answer", wait)
	default:
		c.failAt(v.node, "packages.on_hold must be fail, freeze or like \"wait 20s\", and is %q", plainASCII(s, 40))
	}
}

func (c *compiler) releaseAge(o *object) {
	p := &c.policy.packages
	p.ageSource = ageTrusted
	source, sourceGiven := o.fields["age_source"]
	if sourceGiven {
		if s, ok := c.readWord(source, string(ageTrusted), string(ageFirstSeen), string(ageIgnored)); ok {
			p.ageSource = ageSource(s)
			switch p.ageSource {
			case ageTrusted:
				c.explainEnforced(source, "a file's age counts from the time that the upstream gives; missing or future is a hold")
			case ageFirstSeen:
				c.explainEnforced(source, "a file's age counts from when this installation saw it first")
			case ageIgnored:
				c.explainEnforced(source, "no age is judged")
			}
		}
	}
	age, given := o.fields["min_release_age"]
	if !given {
		return
	}
	s, ok := c.readText(age)
	if !ok {
		return
	}
	if p.minAge, ok = parseDuration(s); !ok {
		c.failAt(age.node, "%s must be a duration like \"7d\", \"36h\" or \"1d12h\" of ten years at most, and is %q", age.path, plainASCII(s, 40))
		return
	}
	if p.ageSource == ageIgnored {
		c.explainEnforced(age, "not applied, because age_source is ignore")
		return
	}
	c.explainEnforced(age, "a file younger than %s is denied, one of unknown age is held", s)
}
