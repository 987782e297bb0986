package policy

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// throwaway is what packages.sdist and packages.install_scripts say beside an effect: the
// publisher's code runs in a sandbox that is thrown away, and what comes of it is served in
// the place of what was published.
const throwaway = "throwaway" // of no type: no effect is this

// untrusted reads allow, deny, hold or throwaway.
func untrusted(c *compiler, v value) (Effect, bool) {
	word, ok := c.readWord(v, string(Deny), string(Hold), string(Allow), throwaway)
	return Effect(word), ok
}

// compileSdist reads packages.sdist.
func compileSdist(c *compiler, v value) {
	sdist, ok := untrusted(c, v)
	if !ok {
		return
	}
	c.policy.packages.sdist = sdist
	if sdist == throwaway {
		c.explainEnforced(v, "source distributions are built in a sandbox of their own, without mounts, secrets, tools or network but for packages; "+
			"only the wheel that comes of it is served")
		return
	}
	c.explainEffect(v, sdist,
		"source distributions are allowed; building one runs its publisher's code in the sandbox",
		"source distributions wait for a person",
		"only wheels are allowed")
}

// compileScripts reads packages.install_scripts.
func compileScripts(c *compiler, v value) {
	scripts, ok := untrusted(c, v)
	if !ok {
		return
	}
	c.policy.packages.scripts = scripts
	if scripts == throwaway {
		c.explainEnforced(v, "install scripts run in a sandbox of their own, without mounts, secrets, tools or network but for packages; "+
			"only the files of their package that come of it are served, but for entries with install_scripts: true")
		return
	}
	c.explainEffect(v, scripts,
		"packages may run scripts when they are installed: their publishers' code runs in the sandbox",
		"packages that run scripts when they are installed wait for a person",
		"packages that run scripts when they are installed are denied, but for entries with install_scripts: true")
}

// compileInstallIn reads packages.install_in after both of the keys that it stands for. Code
// that one of these denies stays denied; one that has code run in the sandbox contradicts it.
func compileInstallIn(c *compiler, v value) {
	if _, ok := c.readWord(v, throwaway); !ok {
		return
	}
	p := &c.policy.packages
	for _, of := range []struct {
		key  string
		word *Effect
	}{{"packages.sdist", &p.sdist}, {"packages.install_scripts", &p.scripts}} {
		switch *of.word {
		case "":
			*of.word = throwaway
		case Allow, Hold:
			c.failAt(v.node, "packages.install_in is throwaway, and %s is %s, which is to run in the sandbox itself: remove one of them", of.key, *of.word)
			return
		case Deny, throwaway:
		}
	}
	c.explainEnforced(v, "source distributions are built, and install scripts run, in sandboxes of their own, unless packages.sdist or packages.install_scripts denies them")
}

// judgeMade judges what is made of a published file apart from the run. That the policy does
// not have that done is no choice that it only observes.
func (j *Judge) judgeMade(kind ArtifactKind) Decision {
	if word := j.policy.packages.madeApart(kind, packageKey{j.ecosystem, j.name}); word == throwaway || word == Allow {
		return Decision{}
	}
	refusal := Decision{Effect: Deny, Rule: ruleKind, ResolvedBy: ByAllowlist}
	if refusal.Reason = "nothing is built of source distributions here; packages.sdist is not throwaway"; kind == KindRan {
		refusal.Reason = "install scripts do not run apart here; packages.install_scripts is not throwaway"
	}
	return refusal
}

// madeApart is the word for what a kind of file is made of, for one package: an entry with
// install_scripts: true has scripts run in the sandbox itself, whatever its versions.
func (r *packageRules) madeApart(kind ArtifactKind, key packageKey) Effect {
	switch {
	case kind == KindBuilt:
		return r.sdist
	case kind != KindRan:
		return Deny
	case slices.ContainsFunc(r.allowed[key], func(e listEntry) bool { return e.installScripts }):
		return Allow
	}
	return r.scripts
}

// MakesApart tells whether files of a kind (KindBuilt, KindRan) that are made of a package's
// published ones, in sandboxes of their own, are offered in their place: one layer says so,
// and the others leave it at that.
func (p *Policy) MakesApart(kind ArtifactKind, project pkgref.Ref) bool {
	makes := false
	for _, l := range p.layers() {
		switch l.packages.madeApart(kind, packageKey{project.Ecosystem, project.Name}) {
		case throwaway:
			makes = true
		case Allow:
		default:
			return false
		}
	}
	return makes
}

// Apart is the policy of a sandbox in which something is made of a published file for a run
// under p: it judges packages as p does, and has p's digest and limits. There is nothing
// else in it: no names but the registries', no tools, credentials, mounts, ports or rules.
// A release that would wait for a person is refused at once. Source distributions are not built in
// it, and the install scripts that would run apart run there, since it is apart already.
func (p *Policy) Apart() *Policy {
	apart := &Policy{
		source: p.source, digest: p.digest, name: p.name, version: p.version, observes: p.observes,
		isolation: p.isolation, resources: p.resources, packages: p.packages, namespaces: slices.Clone(p.namespaces),
		toolsGiven: true, ingress: true, // and lists none
	}
	apart.packages.sdist = Deny
	if p.packages.scripts == throwaway {
		apart.packages.scripts = Allow
	}
	apart.packages.onHold, apart.packages.maxWait = HoldFail, 0
	apart.packages.unaccounted = UnaccountedRecord
	for _, by := range p.narrowed {
		apart.narrowed = append(apart.narrowed, by.Apart())
	}
	return apart
}
