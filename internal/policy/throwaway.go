package policy

import "slices"

// throwaway is what packages.sdist says beside an effect: a source distribution is built in
// a sandbox that is thrown away, and what comes of it is served in its place.
const throwaway = "throwaway" // of no type: no effect is this

// compileSdist reads packages.sdist.
func compileSdist(c *compiler, v value) {
	word, ok := c.word(v, string(Deny), string(Hold), string(Allow), throwaway)
	if !ok {
		return
	}
	sdist := Effect(word)
	c.policy.packages.sdist = sdist
	if sdist == throwaway {
		c.says(v, "source distributions are built in a sandbox of their own, without mounts, secrets, tools or network but for packages; "+
			"only the wheel that comes of it is served")
		return
	}
	c.saysEffect(v, sdist,
		"source distributions are allowed; building one runs its publisher's code in the sandbox",
		"source distributions wait for a person",
		"only wheels are allowed")
}

// compileScripts reads packages.install_scripts. throwaway is no value of it, and the error
// says why.
func compileScripts(c *compiler, v value) Effect {
	if v.node != nil && v.node.Value == throwaway {
		c.fail(v.node, "packages.install_scripts can't be throwaway: what a script leaves is no longer the archive whose digest is in the registry and in lockfiles, so its client would refuse it; "+
			"use deny or hold, and install_scripts: true for the packages that you trust")
		return ""
	}
	return c.effect(v)
}

// judgeBuilt judges what is built of a source distribution apart from the run. That the
// policy does not have that done is no choice that it only observes.
func (j *Judge) judgeBuilt() Decision {
	if sdist := j.policy.packages.sdist; sdist == throwaway || sdist == Allow {
		return Decision{}
	}
	return Decision{
		Effect: Deny, Rule: ruleKind, ResolvedBy: ByAllowlist,
		Reason: "nothing is built of source distributions here; packages.sdist is not throwaway",
	}
}

// BuildsApart tells whether what is built of source distributions in sandboxes of their own
// is offered in their place.
func (p *Policy) BuildsApart() bool {
	builds := false
	for _, l := range p.layers() {
		switch l.packages.sdist {
		case throwaway:
			builds = true
		case Allow:
		default:
			return false
		}
	}
	return builds
}

// Apart is the policy of a sandbox in which a source distribution of a run under p is
// built: it judges packages as p does, and has p's digest and limits. There is nothing else
// in it: no names but the registries', no tools, credentials, mounts, ports or rules. What
// would wait for a person is refused at once, and what is needed for the build comes as
// wheels.
func (p *Policy) Apart() *Policy {
	apart := &Policy{
		source: p.source, digest: p.digest, name: p.name, version: p.version, observes: p.observes,
		isolation: p.isolation, resources: p.resources, packages: p.packages, namespaces: slices.Clone(p.namespaces),
		toolsGiven: true, ingress: true, // and lists none
	}
	apart.packages.sdist = Deny
	apart.packages.onHold, apart.packages.maxWait = HoldFail, 0
	apart.packages.unaccounted = UnaccountedRecord
	for _, by := range p.narrowed {
		apart.narrowed = append(apart.narrowed, by.Apart())
	}
	return apart
}
