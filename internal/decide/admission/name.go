package admission

import (
	"cmp"
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// The rules of names that are none of the policy's.
const (
	ruleNarrowing     = "network_narrowing"
	rulePlan          = "network_plan"
	ruleNamesQuota    = "quota.names"
	ruleRefusalsQuota = "quota.refusals" // of requests
)

// Name implements Door. Registries are not asked about here.
func (c *Controller) Name(ctx context.Context, ask door.NameAsk) (door.NameAnswer, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.NameAnswer{}, err
	}
	d, err := t.judgeHost(ctx, ask.Name, ask.Port, "")
	if err != nil {
		return door.NameAnswer{}, err
	}
	answer := door.NameAnswer{Answer: door.Answer{Decision: d}}
	switch {
	case (d.Effect == policy.Hold || d.Would != "") && !t.unlisted.takeName(ask.Name, c.config.Clock.Read().Now, c.config.Limits.Names):
		answer.Answer, err = hostAsker{t}.tooMany(ctx)
		return answer, err
	case d.Allowed(), d.Effect == policy.Hold:
		answer.Ports, answer.Carried = t.policy().HostPorts(ask.Name), t.hosts.Carried()
		answer.Judged = ask.Port != 0 && t.policy().Requests().Judged(ask.Name, ask.Port)
		answer.Git = answer.Judged && t.policy().Requests().Git(ask.Name, ask.Port)
		answer.TCP = d.Allowed() && ask.Port != 0 && t.policy().HostTCP(ask.Name, ask.Port).Allowed()
		if !ask.Look {
			return answer, observer{t}.recordHost(ctx, d, ask.Name, 0)
		}
	case !ask.Look:
		r, err := t.refuseHost(ctx, d, audit.Blocked, ask.Name, 0) // whatever the port: one record for each name
		answer.Answer.RequestID, answer.Answer.Seq = r.RequestID, r.Seq
		return answer, err
	}
	return answer, nil
}

// blocklisted answers whether the policy, or an advisory, refuses a name whatever
// its release.
func (t *tenant) blocklisted(p pkgref.Ref) (policy.Decision, bool) {
	if p.Name == "" {
		return policy.Decision{}, false
	}
	about, err := t.known.subject(p, ledger.Origin{})
	if err != nil {
		about = policy.Subject{Package: p} // the refusal stands, by a lesser reason
	}
	d := t.known.newJudge(about).Name()
	return d, !d.Allowed() && (d.ResolvedBy == policy.ByBlocklist || d.ResolvedBy == policy.ByAdvisory && d.Alarm)
}

// Failed implements Door. A name that the policy blocks is recorded as blocked: that the upstream
// has no such project (any more) is then beside the point.
func (c *Controller) Failed(ctx context.Context, f door.Failure) (door.Answer, error) {
	t, err := c.admitTenant(ctx, f.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	by, outcome := f.ResolvedBy, audit.Failed
	switch by {
	case policy.ByCanonical:
	case policy.ByNamespace, policy.ByToolchain:
		outcome = audit.Blocked
	default:
		by = policy.ByIntegrity
	}
	d := policy.Decision{Effect: policy.Deny, Rule: cmp.Or(redact.Cut(f.Rule, 200), string(by)), ResolvedBy: by, Reason: redact.Cut(f.Reason, 1_024)}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, File: redact.Cut(f.File, 512), SourceURL: redact.Cut(f.SourceURL, 2_048),
		ResolvedBy: string(by), Rule: d.Rule, Reason: d.Reason,
	}
	if f.Metadata {
		r.Detail = map[string]string{records.DetailKind: string(policy.KindMetadata)}
	}
	if blocked, ok := t.blocklisted(f.Package); ok {
		d = blocked
		r.Outcome, r.ResolvedBy, r.Rule, r.Reason = audit.Blocked, string(d.ResolvedBy), d.Rule, d.Reason
		records.Explain(&r, d)
	}
	records.SetRef(&r, f.Package)
	r.Package, r.InstalledVersion = redact.Cut(r.Package, 256), redact.Cut(r.InstalledVersion, 256)
	r, err = t.book.Refuse(ctx, r)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}
