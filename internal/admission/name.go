package admission

import (
	"cmp"
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
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
	name := clip(ask.Name, 253)
	d := policy.Decision{
		Effect: policy.Deny, Rule: ruleNetwork, ResolvedBy: policy.ByNetwork,
		Reason: "a sandbox reaches package registries and nothing else",
	}
	if open, reason := t.narrowing.get().Name(name); !open {
		d.Rule, d.Reason = ruleNarrowing, reason
	}
	r := audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Blocked, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: map[string]string{detailName: name},
	}
	if !t.takesName(keyOf(r), c.config.Limits.Names) {
		r.Outcome, r.Rule, r.Detail = audit.Exceeded, ruleNamesQuota, nil
		r.Reason = "more different names were asked for than are recorded one by one"
	}
	r, err = c.refuse(ctx, t, r)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}

// takesName reports whether a refused name may have a record of its own, and
// counts it if it is new.
func (t *tenant) takesName(key refusalKey, limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusals[key] != nil {
		return true
	}
	if t.names[key.more] {
		return true // it is being recorded, or that failed and is tried again
	}
	if len(t.names) >= limit {
		return false
	}
	t.names[key.more] = true
	return true
}

// blocklisted answers whether the policy, or an advisory, refuses a name whatever
// its release.
func (c *Controller) blocklisted(t *tenant, p pkgref.Ref) (policy.Decision, bool) {
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
	d := policy.Decision{Effect: policy.Deny, Rule: cmp.Or(clip(f.Rule, 200), string(by)), ResolvedBy: by, Reason: clip(f.Reason, 1_024)}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, File: clip(f.File, 512), SourceURL: clip(f.SourceURL, 2_048),
		ResolvedBy: string(by), Rule: d.Rule, Reason: d.Reason,
	}
	if f.Metadata {
		r.Detail = map[string]string{detailKind: string(policy.KindMetadata)}
	}
	if blocked, ok := c.blocklisted(t, f.Package); ok {
		d = blocked
		r.Outcome, r.ResolvedBy, r.Rule, r.Reason = audit.Blocked, string(d.ResolvedBy), d.Rule, d.Reason
		explain(&r, d)
	}
	setRef(&r, f.Package)
	r.Package, r.InstalledVersion = clip(r.Package, 256), clip(r.InstalledVersion, 256)
	r, err = c.refuse(ctx, t, r)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}
