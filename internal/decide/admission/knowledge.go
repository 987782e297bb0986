package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// knowledge is all that is known, outside of its ledger, of what a run asks for: its
// policy and lockfiles, the installation's namespaces and imported facts, what people
// have answered, the time. It is what the ledger judges by.
type knowledge struct {
	config *Config
	run    *Run
	law    *runPolicies
}

var _ ledger.Rules = knowledge{}

// Policy implements ledger.Rules.
func (k knowledge) Policy() *policy.Policy { return k.law.now.Load() }

// Judge implements ledger.Rules.
func (k knowledge) Judge(project pkgref.Ref, from ledger.Origin, edges []policy.Edge) (*policy.Judge, error) {
	about, err := k.subject(project, from)
	if err != nil {
		return nil, err
	}
	about.Edges = edges
	return k.newJudge(about), nil
}

// subject gathers what is known of a project, its edges and people's answers aside.
func (k knowledge) subject(project pkgref.Ref, from ledger.Origin) (policy.Subject, error) {
	project = project.Project()
	s := policy.Subject{Package: project, Upstream: from.Upstream, Toolchain: from.Toolchain}
	s.Owner = k.namespaceOwner(project)
	if k.run.Lock != nil {
		s.Lock = k.run.Lock.For(project)
	}
	if k.config.Advisories == nil {
		return s, nil
	}
	facts, err := k.config.Advisories.Facts(project)
	if err != nil {
		return s, errUnknown(project, err)
	}
	s.Malware, s.Lookalike = facts.Malware, facts.Lookalike
	if policy.WeighsVulnerabilities(k.Policy()) {
		known, err := k.config.Advisories.Vulnerabilities(project)
		if err != nil {
			return s, errUnknown(project, err)
		}
		s.Vulnerabilities, s.Assessed = known.Known, known.Assessed
	}
	return s, nil
}

// namespaceOwner is the upstream that a project's namespace names; "": it has none.
func (k knowledge) namespaceOwner(project pkgref.Ref) string {
	upstream, _ := k.Policy().Owner(k.config.Namespaces, project)
	return upstream
}

// newJudge judges by the policy in force and by the time that it is.
func (k knowledge) newJudge(about policy.Subject) *policy.Judge { return k.judgeBy(k.Policy(), about) }

// judgeBy judges by a policy and by the time that it is.
func (k knowledge) judgeBy(p *policy.Policy, about policy.Subject) *policy.Judge {
	return judgeAt(p, k.config.Clock.Read(), about)
}

// judgeAt judges by the time of a reading; where the host's clock has jumped, by what
// the time may be as well.
func judgeAt(p *policy.Policy, now clock.Reading, about policy.Subject) *policy.Judge {
	if now.Jumped() {
		about.Otherwise = now.Wall
	}
	return p.Judge(now.Now, about)
}

// generation names the state of all facts that subject gathers.
func (k knowledge) generation(from ledger.Origin) string {
	parts := []string{from.Upstream, "", "", ""}
	if from.Toolchain {
		parts[1] = "toolchain"
	}
	if k.run.Lock != nil {
		parts[2] = k.run.Lock.Digest()
	}
	if k.config.Advisories != nil {
		parts[3] = k.config.Advisories.Generation()
	}
	return strings.Join(parts, "\x00")
}

// answers are what people have answered about a project's releases, as far as it
// holds for the run. They are gathered anew for each decision, so that a
// denial or a revocation counts from when it was made.
func (k knowledge) answers(ctx context.Context, project pkgref.Ref) ([]policy.Approval, error) {
	if k.config.Approvals == nil || !k.Policy().MayHold() {
		return nil, nil
	}
	project = project.Project()
	answers, _, err := k.config.Approvals.Grants(ctx, project, k.askerOf())
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "what people have answered about %s could not be read", project)
	}
	return answers, nil
}

// askerOf is whose run asks, as answers are found by it.
func (k knowledge) askerOf() approval.Asker {
	return approval.Asker{Run: k.run.Run, Token: k.run.Token, OwnerKey: k.config.owners.Of(k.run.Run, k.run.Token), User: k.run.User, Policy: k.Policy().Digest()}
}

// answersEpoch names answers by what they say; "" if there are none.
func answersEpoch(answers []policy.Approval) string {
	if len(answers) == 0 {
		return ""
	}
	text, err := json.Marshal(answers)
	if err != nil { // not reached: strings always encode
		return "?"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// settleDecision makes of a decision what this installation can do with it: where nobody
// can be asked a hold is a refusal, and says so.
func (k knowledge) settleDecision(d policy.Decision) policy.Decision {
	switch d.Effect {
	case policy.Allow, policy.Deny:
	case policy.Hold:
		if k.config.Approvals == nil {
			d.Effect = policy.Deny
			d.Reason += "; nobody can be asked here, so it is refused"
		}
	default:
		d.Effect, d.Reason = policy.Deny, "the policy gave no decision, so it is refused"
	}
	return d
}

// malwareInside refuses a file that policy allowed, by d, for a package inside it
// that is known to be malicious. One without a version is if all of its are.
func (k knowledge) malwareInside(q fileQuestion, d policy.Decision) (policy.Decision, error) {
	if k.config.Advisories == nil {
		return d, nil
	}
	for _, text := range q.Bundled {
		name, version, _ := strings.Cut(text, " ")
		inner := pkgref.Ref{Ecosystem: q.Package.Ecosystem, Name: name}
		facts, err := k.config.Advisories.Facts(inner)
		if err != nil {
			return d, errUnknown(inner, err)
		}
		if len(facts.Malware) == 0 {
			continue
		}
		// By a policy without lists, which come before advisories: what is inside
		// of a file is not a choice of this run's.
		j := new(policy.Policy).Judge(k.config.Clock.Read().Now, policy.Subject{Package: inner, Malware: facts.Malware})
		verdict := j.Name()
		if version != "" {
			verdict = j.Release(version)
		}
		if verdict.ResolvedBy == policy.ByAdvisory && verdict.Alarm {
			verdict.Reason, verdict.WantedBy, verdict.Pinned = "a package inside the file: "+verdict.Reason, d.WantedBy, d.Pinned
			return verdict, nil
		}
	}
	return d, nil
}

// ruleUnknown is of packages of which the imported facts can't be read.
const ruleUnknown = "advisory.unreadable"

// errFacts tells errors of the imported facts from others.
var errFacts = errors.New("the imported facts about packages can't be read")

func errUnknown(p pkgref.Ref, err error) error {
	return fault.Wrap(fault.ErrUnavailable, errors.Join(errFacts, err), "what is known of %s could not be read", p)
}

// unknownDecision is the refusal of a package of which the imported facts can't
// be read: it might be malware.
func unknownDecision() policy.Decision {
	return policy.Decision{
		Effect: policy.Deny, Rule: ruleUnknown, ResolvedBy: policy.ByAdvisory,
		Reason: "the imported facts about packages can't be read, so every package is refused; on the host, see: cofferdam advisory status",
	}
}

// require puts into a subject what this run knows of who requires it.
func (t *tenant) require(about *policy.Subject, p pkgref.Ref) {
	about.Edges = t.ledger.EdgesTo(p).List
	about.Declared = t.ledger.Declares(p)
}
