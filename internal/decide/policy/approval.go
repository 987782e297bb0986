package policy

import (
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Approval is a person's answer about a release, as a fact: only those that
// hold for the run (by scope and expiry) are given to Judge. It decides what
// would wait for a person, and nothing else: what the policy denies stays
// denied.
type Approval struct {
	ID      string // of the request
	Version string // canonical
	// Upstream is the index's URL of the release that was answered: another
	// index's release of the same name asks again. "": any.
	Upstream string
	Denied   bool
	By       string // who answered, for the reason
	Reason   string // the person's, shown to the run if it is a denial
	// Digests of the files that the person was shown. An approval admits a file
	// with one of its strong digests, and no other; a denial denies every file
	// of the release.
	Digests []string
}

// HoldMode is what a held install does.
type HoldMode string

// The modes.
const (
	HoldFail   HoldMode = "fail"   // it fails at once, with the request's id
	HoldWait   HoldMode = "wait"   // the client's request waits
	HoldFreeze HoldMode = "freeze" // the whole sandbox is written to disk until the answer comes
)

// ByApproval is the step at which a person's answer decided.
const ByApproval ResolvedBy = "approval"

// ruleApproval is of what a person answered.
const ruleApproval = "approval"

// OnHold is what an install does that waits for a person; maxWait is how long
// it waits at most, of HoldWait. A document that does not say lets it fail.
func (p *Policy) OnHold() (mode HoldMode, maxWait time.Duration) {
	if p.packages.onHold == "" {
		return HoldFail, 0
	}
	return p.packages.onHold, p.packages.maxWait
}

// MayHold tells whether anything can wait for a person under this policy, or would if it
// did not only observe; if not, approvals need not be gathered.
func (p *Policy) MayHold() bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool {
		rules := &l.packages
		return slices.Contains([]Effect{rules.byDefault, rules.sdist, rules.scripts, rules.toolchains, rules.similar}, Hold) ||
			rules.vulnerabilities.mayHold() || rules.minAge > 0 && rules.ageSource != ageIgnored || l.observes
	})
}

// Kept answers whether a release that is in a sandbox already may be there: all that Release does,
// and people's answers about files with the digests. The limits of a file (its age, its kind) were
// weighed when it was let in.
func (j *Judge) Kept(version string, digests []string) Decision {
	ofOne := func(j *Judge) Decision {
		return j.weighAnswers(j.ownRelease(version), FileFacts{Version: version, Digests: digests})
	}
	return j.underNarrowing(ofOne(j), ofOne)
}

// weighAnswers weighs people's answers about a file that would wait, after all that
// could deny it. A denial counts before an approval, and where the policy only observes.
func (j *Judge) weighAnswers(d Decision, f FileFacts) Decision {
	if d.Effect != Hold && d.Would == "" || len(j.answers) == 0 {
		return d
	}
	r, _ := pkgref.ParseVersion(j.ecosystem, f.Version) // it was judged before
	var approved *parsedAnswer
	for i := range j.answers {
		a := &j.answers[i]
		switch {
		case !a.isOfRelease(r) || !a.isFromUpstream(j.about.Upstream):
		case a.Denied:
			return j.deniedBy(a, d)
		case approved == nil && a.coversDigests(f.Digests):
			approved = a
		}
	}
	if approved == nil || d.Would == Deny {
		return d
	}
	return Decision{
		Effect: Allow, Rule: ruleApproval, ResolvedBy: ByApproval, Approval: approved.ID,
		Reason:  reason("%s was approved by %s (%s)", shortName(j.name), plainASCII(approved.By, 40), plainASCII(approved.ID, 30)),
		Through: j.release(f.Version).Through, WantedBy: d.WantedBy, Pinned: d.Pinned,
	}
}

func (j *Judge) deniedBy(a *parsedAnswer, d Decision) Decision {
	refusal := Decision{Effect: Deny, Rule: ruleApproval, ResolvedBy: ByApproval, Approval: a.ID, WantedBy: d.WantedBy, Pinned: d.Pinned}
	refusal.Reason = reason("%s was denied by %s (%s)", shortName(j.name), plainASCII(a.By, 30), plainASCII(a.ID, 30))
	if a.Reason != "" {
		refusal.Reason = reason("%s: %s", refusal.Reason, plainASCII(a.Reason, maxReason))
	}
	return refusal
}

// parsedAnswer is an Approval with its version parsed.
type parsedAnswer struct {
	Approval
	release pkgref.Version
}

// isOfRelease tells whether the answer is about a release.
func (a *parsedAnswer) isOfRelease(r pkgref.Version) bool {
	return r.Same(a.release)
}

// isFromUpstream tells whether the answer is about what this index has.
func (a *parsedAnswer) isFromUpstream(upstream string) bool {
	return a.Upstream == "" || SameUpstream(a.Upstream, upstream)
}

// coversDigests tells whether the person was shown a file with one of these digests. One
// that can be forged binds nothing.
func (a *parsedAnswer) coversDigests(digests []string) bool {
	return slices.ContainsFunc(digests, func(d string) bool { return StrongDigest(d) && slices.Contains(a.Digests, d) })
}
