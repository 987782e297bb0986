package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Reach implements Door. Reads in its course are asked about as ever, with Walk:
// so a release counts as it does for any client, and only that it is read is no record.
func (c *Controller) Reach(ctx context.Context, ask door.ReachAsk) (door.ReachAnswer, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.ReachAnswer{}, err
	}
	d, open, err := t.mayBeRequired(ask)
	if err != nil || !open {
		return door.ReachAnswer{Reached: err == nil}, err
	}
	near := d.ByLikeness()
	var roots []string
	if t.policy().AdmitsDependencies(ask.Package.Ecosystem) || !near {
		roots = t.policy().Roots(ask.Package.Ecosystem)
	}
	next := t.ledger.Next(ask, near, roots, c.config.Clock.Read().Now)
	return door.ReachAnswer{Next: next, Open: near && (ask.Deep || ask.Pages && !ask.Metadata) && len(next) == 0}, nil
}

// Reached implements Door.
func (c *Controller) Reached(ctx context.Context, ask door.ReachAsk) (bool, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return false, err
	}
	_, open, err := t.mayBeRequired(ask)
	return err == nil && !open, err
}

// StopReaching implements Door.
func (c *Controller) StopReaching(ctx context.Context, ask door.ReachAsk) error {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return err
	}
	_, open, err := t.mayBeRequired(ask)
	if open {
		t.ledger.GiveUp(ask.Package.Project())
	}
	return err
}

// mayBeRequired tells that a package is on no list and nothing that was read requires
// it, where that would let it in, with the decision as things stand.
func (t *tenant) mayBeRequired(ask door.ReachAsk) (d policy.Decision, open bool, err error) {
	if !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name) || len(ask.Again) > ledger.MaxBatch {
		return d, false, fault.Invalid("a way is asked for to a package by its canonical name, not to %q", redact.Cut(ask.Package.String(), 200))
	}
	law := t.policy()
	owner := t.known.namespaceOwner(ask.Package)
	about, err := t.known.subject(ask.Package, ledger.Origin{Upstream: owner})
	if err != nil {
		return d, false, err
	}
	t.require(&about, ask.Package)
	j := t.known.judgeBy(law, about)
	if ask.Package.Version == "" {
		d = j.Name()
		return d, mayLift(law, ask.Package.Ecosystem, d, ask.Metadata && len(about.Edges) == 0), nil
	}
	d = j.Release(ask.Package.Version)
	return d, mayLift(law, ask.Package.Ecosystem, d, false), nil
}

// mayLift tells whether one more requirement can change a decision: let it in, or, of
// metadata that nothing requires, have it read.
func mayLift(law *policy.Policy, e pkgref.Ecosystem, d policy.Decision, metadata bool) bool {
	return d.ByNoList() && (law.AdmitsDependencies(e) || d.ByLikeness() || metadata && law.UsesEdges(e) && len(law.Roots(e)) > 0)
}

// unreached tells that a file's answer is not the last word: what requires the file may
// not have been read. A plan's resolver reads all that it weighs.
func (t *tenant) unreached(q fileQuestion, w weighed) bool {
	return q.mayWalk && !t.run.Plan && mayLift(t.policy(), q.Package.Ecosystem, w.decision, false)
}

// bounded adds to a refusal that a walk's bound may have caused that it may, and what to do.
func (t *tenant) bounded(p pkgref.Ref, d policy.Decision) policy.Decision {
	if bound := t.ledger.Bound(p.Project()); bound != "" && mayLift(t.policy(), p.Ecosystem, d, false) {
		d.Reason += "; not all that may require it was read, since " + bound + "; a lockfile given with --lockfile is read first"
	}
	return d
}
