package policy

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// The rules of what is looked at of a file.
const (
	ruleSdist   = "packages.sdist"
	ruleKind    = "packages.kind"
	ruleAge     = "packages.min_release_age"
	ruleScripts = "packages.install_scripts"
	ruleHashes  = "packages.require_hashes"
)

// narrow applies what looks at the file to a release that is not denied: the
// strictest of its digest, kind, age, scripts and what was decided stands.
func (j *Judge) narrow(d Decision, f FileFacts) Decision {
	if d = stricter(d, j.judgeDigest(f, d)); d.Effect != Deny {
		d = stricter(d, observe(j.policy, j.judgeKind(f.Kind)))
	}
	if d.Effect != Deny {
		d = stricter(d, observe(j.policy, j.judgeAge(f)))
	}
	if d.Effect != Deny && f.Scripts && f.Kind != KindRan { // whose scripts ran elsewhere
		d = stricter(d, observe(j.policy, j.judgeScripts(f)))
	}
	if d.Effect != Deny && j.policy.packages.hashes {
		d = stricter(d, observe(j.policy, j.judgeHashes(f)))
	}
	return d
}

// stricter gives the refusal, if it is one (its zero value is none) and stricter
// than what was decided. One that is only observed takes nothing from what was admitted.
func stricter(d, refusal Decision) Decision {
	switch {
	case refusal.Effect == Deny, refusal.Effect == Hold && d.Effect == Allow:
	case refusal.Would != "" && d.Effect == Allow && refusal.strictness() > d.strictness():
		refusal.Through = d.Through
	default:
		return d
	}
	refusal.WantedBy, refusal.Pinned = d.WantedBy, d.Pinned
	return refusal
}

func (j *Judge) judgeKind(kind ArtifactKind) Decision {
	refusal := Decision{Rule: ruleSdist, ResolvedBy: ByAllowlist}
	switch kind {
	case KindWheel, KindPackage:
		return Decision{}
	case KindBuilt, KindRan:
		return j.judgeMade(kind)
	case KindSdist:
		switch j.policy.packages.sdist {
		case throwaway:
			refusal.Effect = Deny
			refusal.Reason = "a source distribution is built in a sandbox of its own, and only the wheel that comes of it is served; packages.sdist is throwaway"
			return refusal
		case Allow:
			return Decision{}
		case Hold:
			refusal.Effect = Hold
			refusal.Reason = "a source distribution waits for approval; packages.sdist is hold"
		case Deny:
			refusal.Effect = Deny
			refusal.Reason = "only wheels are allowed; packages.sdist is deny"
		default:
			refusal.Effect = Deny
			refusal.Reason = "only wheels are allowed; packages.sdist is not set"
		}
		refusal.Suggest = "packages:\n  sdist: allow\n"
	case KindOther, KindMetadata:
		fallthrough
	default:
		refusal.Effect, refusal.Rule = Deny, ruleKind
		refusal.Reason = "this kind of file is never allowed; packages are not installed from it"
	}
	return refusal
}

// eraBegins is when the oldest registries began; an older time is a
// placeholder (1970) and so unknown.
func eraBegins() time.Time { return time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC) }

// judgeAge asks for a file's age, by both times where there is doubt.
func (j *Judge) judgeAge(f FileFacts) Decision {
	d := j.decideAge(f, j.now)
	if j.about.Otherwise.IsZero() {
		return d
	}
	other := j.decideAge(f, j.about.Otherwise)
	if (d.Effect == "") == (other.Effect == "") {
		return stricter(d, other)
	}
	return Decision{
		Effect: Hold, Rule: ruleAge, ResolvedBy: ByAllowlist,
		Reason: "the host's clock has jumped, and whether this file of " + shortName(j.name) + " is as old as packages.min_release_age asks for depends on which time is right",
	}
}

func (j *Judge) decideAge(f FileFacts, now time.Time) Decision {
	rules := &j.policy.packages
	if rules.minAge <= 0 || rules.ageSource == ageIgnored {
		return Decision{}
	}
	refusal := Decision{Effect: Hold, Rule: ruleAge, ResolvedBy: ByAllowlist}
	from := j.policy.AgedFrom(f)
	switch {
	case from.Before(eraBegins()) && rules.ageSource == ageFirstSeen:
		refusal.Reason = "this file of " + shortName(j.name) + " was never seen before, and packages.min_release_age asks for its age"
	case from.Before(eraBegins()):
		refusal.Reason = "the age of this file of " + shortName(j.name) + " is unknown, and packages.min_release_age asks for one"
	case from.After(now):
		refusal.Reason = "this file of " + shortName(j.name) + " is dated in the future, so its age is unknown"
	case now.Sub(from) >= rules.minAge:
		return Decision{}
	case rules.ageSource == ageFirstSeen:
		refusal.Effect = Deny
		refusal.Reason = "this file of " + shortName(j.name) + " was first seen later than packages.min_release_age asks for"
	default:
		refusal.Effect = Deny
		refusal.Reason = "this file of " + shortName(j.name) + " is younger than packages.min_release_age"
	}
	return refusal
}

func (j *Judge) judgeScripts(f FileFacts) Decision {
	refusal := Decision{Effect: Deny, Rule: ruleScripts, ResolvedBy: ByAllowlist}
	r, _ := pkgref.ParseVersion(j.ecosystem, f.Version) // it was judged before
	for i := range j.allowed {
		if e := &j.allowed[i]; e.installScripts && e.admits(r) {
			return Decision{}
		}
	}
	switch j.policy.packages.scripts {
	case Allow:
		return Decision{}
	case Hold:
		refusal.Effect = Hold
		refusal.Reason = reason("%s runs a script when it is installed, which waits for approval; packages.install_scripts is hold", shortName(j.name))
	case throwaway:
		refusal.Reason = reason("%s runs a script when it is installed, and only what comes of it apart is served; packages.install_scripts is throwaway", shortName(j.name))
		return refusal
	case Deny:
		refusal.Reason = reason("%s runs a script when it is installed; packages.install_scripts is deny", shortName(j.name))
	default:
		refusal.Reason = reason("%s runs a script when it is installed; packages.install_scripts is not set", shortName(j.name))
	}
	if len(j.allowed) > 0 || j.about.Lookalike == nil { // to nobody an entry is suggested for a name that is near to another
		s := addition(j.ecosystem, j.name, r)
		s.installScripts = true
		refusal.Suggest = s.document()
	}
	return refusal
}

// judgeHashes refuses what only weak digests, or none, vouch for. A digest of which an index says
// nothing may still be in a witness's log: that is open until the bytes are here.
func (j *Judge) judgeHashes(f FileFacts) Decision {
	if strongKind(f.Digest) != "" || f.Digest == "" && !f.Complete {
		return Decision{}
	}
	refusal := Decision{Effect: Deny, Rule: ruleHashes, ResolvedBy: ByAllowlist}
	if f.Digest == "" {
		refusal.Reason = reason("no digest of this file of %s is published, and packages.require_hashes asks for one", shortName(j.name))
	} else {
		refusal.Reason = reason("only a weak digest of this file of %s is published, and packages.require_hashes asks for a strong one", shortName(j.name))
	}
	return refusal
}
