package admission

import (
	"cmp"
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

const (
	ruleNetwork    = "network_default"
	ruleNarrowing  = "network_narrowing"
	ruleNamesQuota = "quota.names"
)

// Name implements Door. This version forwards nothing but registries, and these
// are not asked about here, so every name is refused: by what the sandbox's own
// client closed, where that is why it would stay closed under any policy.
func (c *Controller) Name(ctx context.Context, ask door.NameAsk) (door.Answer, error) {
	t, err := c.admit(ctx, ask.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	name := excerpt.Of(ask.Name, 253)
	d := policy.Decision{
		Effect: policy.Deny, Rule: ruleNetwork, ResolvedBy: policy.ByNetwork,
		Reason: "a sandbox reaches package registries and nothing else",
	}
	if open, reason := t.narrowing.get().Name(name); !open {
		d.Rule, d.Reason = ruleNarrowing, reason
	}
	r := audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Blocked, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: map[string]string{records.DetailName: name},
	}
	if !t.book.TakesName(r) {
		r.Outcome, r.Rule, r.Detail = audit.Exceeded, ruleNamesQuota, nil
		r.Reason = "more different names were asked for than are recorded one by one"
	}
	r, err = t.book.Refuse(ctx, r)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
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
	d := t.known.judge(about).Name()
	return d, !d.Allowed() && (d.ResolvedBy == policy.ByBlocklist || d.ResolvedBy == policy.ByAdvisory && d.Alarm)
}

// Failed implements Door. What the policy blocks by name is recorded as
// blocked: that the upstream has no such project (any more) is then beside the
// point.
func (c *Controller) Failed(ctx context.Context, f door.Failure) (door.Answer, error) {
	t, err := c.admit(ctx, f.Sandbox)
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
	d := policy.Decision{Effect: policy.Deny, Rule: cmp.Or(excerpt.Of(f.Rule, 200), string(by)), ResolvedBy: by, Reason: excerpt.Of(f.Reason, 1_024)}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, File: excerpt.Of(f.File, 512), SourceURL: excerpt.Of(f.SourceURL, 2_048),
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
	r.Package, r.InstalledVersion = excerpt.Of(r.Package, 256), excerpt.Of(r.InstalledVersion, 256)
	r, err = t.book.Refuse(ctx, r)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}
