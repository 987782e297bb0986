package policy

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// ByVulnerability is the step at which a known vulnerability decided, or that none can be
// known.
const ByVulnerability ResolvedBy = "vulnerability"

// ruleVulnerabilities is packages.vulnerabilities.
const ruleVulnerabilities = "packages.vulnerabilities"

// vulnerabilityRules are packages.vulnerabilities; a level of 0 is none.
type vulnerabilityRules struct {
	given      bool
	deny, hold Severity
	unknown    Effect // of one whose severity nobody tells
}

// effect is what a vulnerability of this severity does.
func (v vulnerabilityRules) effect(s Severity) Effect {
	switch {
	case s == SeverityUnknown:
		return v.unknown
	case v.deny != 0 && s >= v.deny:
		return Deny
	case v.hold != 0 && s >= v.hold:
		return Hold
	}
	return Allow
}

// mayHold tells whether a person may be asked by the rule.
func (v vulnerabilityRules) mayHold() bool { return v.given && (v.hold != 0 || v.unknown == Hold) }

// WeighsVulnerabilities tells whether it matters under a policy, or one that narrows it, which
// vulnerabilities packages have.
func WeighsVulnerabilities(p *Policy) bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.packages.vulnerabilities.given })
}

// weighing is the part of a Judge that weighs known vulnerabilities. They weigh on whatever
// admits a release: an entry, a dependency, a lockfile.
type weighing struct {
	judge   *Judge
	known   *vulnerabilities    // nil: not parsed yet
	decided map[string]Decision // by version
}

// weighRelease returns d, or, unless d refuses already, what the vulnerabilities of the version make of it.
func (w *weighing) weighRelease(d Decision, version string) Decision {
	if !w.judge.policy.packages.vulnerabilities.given || d.Effect == Deny {
		return d
	}
	refusal, known := w.decided[version]
	if !known {
		if len(w.decided) >= maxRemembered {
			clear(w.decided)
		}
		refusal = w.decide(version)
		w.decided[version] = refusal
	}
	return stricter(d, observe(w.judge.policy, refusal))
}

// anyRelease is d, or the refusal of a package of whose ecosystem no vulnerabilities are known:
// none of its releases could be judged.
func (w *weighing) anyRelease(d Decision) Decision {
	if !w.judge.policy.packages.vulnerabilities.given || d.Effect == Deny || w.judge.about.Assessed {
		return d
	}
	return stricter(d, observe(w.judge.policy, w.unassessed()))
}

func (w *weighing) unassessed() Decision {
	return Decision{
		Effect: Deny, Rule: ruleVulnerabilities, ResolvedBy: ByVulnerability,
		Reason: reason("packages.vulnerabilities can't be judged: no known vulnerabilities of %s packages are imported (cofferdam advisory import)", w.judge.ecosystem),
	}
}

func (w *weighing) decide(version string) Decision {
	j := w.judge
	if !j.about.Assessed {
		return w.unassessed()
	}
	if w.known == nil {
		w.known = parseVulnerabilities(j.ecosystem, j.about.Vulnerabilities)
	}
	r, _ := pkgref.ParseVersion(j.ecosystem, version) // it was judged before
	refusal, count := Decision{}, 0
	var worst KnownVulnerability
	for _, k := range w.known.vulnerabilitiesOf(r, w.accepted(r)) {
		effect := j.policy.packages.vulnerabilities.effect(k.Severity)
		if effect == Allow {
			continue
		}
		if refusal.Effect == "" || effect == Deny && refusal.Effect == Hold {
			refusal.Effect, worst = effect, k
		}
		count++
	}
	if count == 0 {
		return refusal
	}
	refusal.Rule, refusal.ResolvedBy = ruleVulnerabilities, ByVulnerability
	refusal.Reason = reason("this version of %s has %s", shortName(j.name), worst)
	if count > 1 {
		refusal.Reason = reason("%s, and %d more", refusal.Reason, count-1)
	}
	return refusal
}

// accepted are the vulnerabilities that entries which admit the release accept.
func (w *weighing) accepted(r pkgref.Version) []string {
	var ids []string
	for i := range w.judge.allowed {
		if e := &w.judge.allowed[i]; len(e.accepted) > 0 && e.admits(r) {
			ids = append(ids, e.accepted...)
		}
	}
	return ids
}
