package admission

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A plan's run (Run.Plan) is shown what would wait for a person, and what is
// denied only because no list names it, so that a resolver can go on; nothing
// is held, and no file counts as served.

// Keys of Record.Detail.
const (
	detailPlan   = "plan"   // of a started record: "true", its installs are only weighed
	detailEffect = "effect" // of a planned record: the policy's own verdict
	detailRead   = "read"   // of a planned record: "true", the resolver was given the bytes
)

// Plan weighs what the resolver of a plan's run chose, by the policy of the run
// and all that the run was shown, and records a verdict for each release. It
// admits nothing. fault.ErrNotFound if no plan's sandbox of that run lives.
func (c *Controller) Plan(ctx context.Context, run string, choices []planning.Choice) (planning.Plan, error) {
	t, err := c.planTenant(ctx, run)
	if err != nil {
		return planning.Plan{}, err
	}
	plan, err := planning.Weigh(ctx, planRun{t}, t.shown, choices)
	if err != nil {
		return planning.Plan{}, err
	}
	for i := range plan.Releases {
		if _, err := t.book.Append(ctx, plannedRecord(&plan.Releases[i])); err != nil {
			return planning.Plan{}, err
		}
	}
	return plan, nil
}

// planTenant finds the plan's sandbox of a run.
func (c *Controller) planTenant(ctx context.Context, run string) (*tenant, error) {
	all := c.tenants.listTenants()
	at := slices.IndexFunc(all, func(t *tenant) bool { return t.run.Run == run && t.run.Plan })
	if at < 0 {
		return nil, fault.New(fault.ErrNotFound, "no sandbox of run %q makes a plan now; a plan is asked for while its sandbox lives", redact.Cut(run, 200))
	}
	return all[at], all[at].book.Open(ctx)
}

// planRun is a plan's run as planning weighs it: by the run's own policy, and not by the
// one that its resolver is shown releases by.
type planRun struct{ t *tenant }

// Judge implements planning.Run.
func (r planRun) Judge(ctx context.Context, release pkgref.Ref, from ledger.Origin) (*policy.Judge, error) {
	about, err := r.t.known.subject(release, from)
	if err != nil {
		return nil, err
	}
	r.t.require(&about, release)
	if about.Approvals, err = r.t.known.answers(ctx, release); err != nil {
		return nil, err
	}
	return r.t.known.judgeBy(r.t.verdicts, about), nil
}

// Requirements implements planning.Run.
func (r planRun) Requirements(release pkgref.Ref) []door.Requirement {
	return r.t.ledger.Requirements(release)
}

// planned is what a resolver is shown of a decision: in a plan a hold is shown
// like what is allowed.
func planned(plan bool, d policy.Decision) policy.Decision {
	if plan && d.Effect == policy.Hold {
		d.Effect, d.Unadmitted = policy.Allow, true
	}
	return d
}

// servedOrPlanned is the record that a file's bytes are given for: in a plan
// that is no serving, and has the verdict of the run's own policy.
func (t *tenant) servedOrPlanned(q fileQuestion, part string, w weighed) audit.Record {
	r := t.servedRecord(q, part, w.decision)
	if t.shown == nil {
		return r
	}
	verdict := t.known.judgeBy(t.verdicts, w.about).File(q.fileFacts())
	r.Outcome = audit.Planned
	r.ResolvedBy, r.Rule, r.Reason = string(verdict.ResolvedBy), verdict.Rule, verdict.Reason
	r.Detail = maps.Clone(r.Detail)
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[detailEffect], r.Detail[detailRead] = verdictText(verdict), "true"
	return r
}

// plannedRecord is the record of a verdict.
func plannedRecord(w *planning.Weighed) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Planned, SourceURL: w.Source,
		ResolvedBy: string(w.Verdict.ResolvedBy), Rule: w.Verdict.Rule, Reason: w.Verdict.Reason,
		Detail: map[string]string{detailEffect: verdictText(w.Verdict)},
	}
	records.SetRef(&r, w.Package)
	if w.Problem != "" {
		r.Reason, r.Detail[detailEffect], r.GuestClaimed = w.Problem, "none", true
	}
	if len(w.Files) > 0 {
		f := w.Files[0]
		r.File, r.Size = f.Name, f.Size
		for _, d := range f.Digests {
			if isSHA256(d) {
				r.SHA256 = d[len("sha256:"):]
			}
		}
		if r.SHA256 == "" && len(f.Digests) > 0 {
			r.Detail[records.DetailUpstreamDigest] = f.Digests[0]
		}
	}
	return r
}

// RequestPlan files the releases of a plan that would wait for a person in the
// queue, as one group, and notes each request in its release. Of what the queue
// does not take the verdict's reason says so.
func (c *Controller) RequestPlan(ctx context.Context, run, because string, p *planning.Plan) error {
	t, err := c.planTenant(ctx, run)
	if err != nil {
		return err
	}
	if c.config.Approvals == nil {
		return fault.New(fault.ErrUnavailable, "nobody can be asked: this daemon has no approval queue")
	}
	for i := range p.Releases {
		w := &p.Releases[i]
		if w.Problem != "" || w.Verdict.Effect != policy.Hold {
			continue
		}
		r, err := t.known.fileAsk(ctx, t.planAsk(w, because))
		if errors.Is(err, fault.ErrForbidden) { // the queue takes no more; the plan is told all the same
			w.Verdict.Reason += notAsked(err)
			continue
		}
		if err != nil {
			return err
		}
		w.Approval, w.Group = r.ID, r.Group
	}
	return nil
}

func (t *tenant) planAsk(w *planning.Weighed, because string) approval.Ask {
	var wanted []string
	for _, by := range w.WantedBy {
		wanted = append(wanted, by.Text(w.Package))
	}
	return approval.Ask{
		Package: w.Package, Upstream: w.Upstream, Files: w.Files,
		Run: t.run.Run, Sandbox: t.run.Sandbox, Policy: t.policy().Digest(), PolicyName: t.policy().Source(),
		Token: t.run.Token, OwnerKey: t.ownerKey, User: t.run.User, ByPerson: t.run.Token == "", Task: t.run.Task, Because: because, WantedBy: wanted,
		Rule: w.Verdict.Rule, Reason: w.Verdict.Reason, Evidence: w.Evidence,
	}
}

// memberAsk is a release of a plan for the queue, asked for by the run that waits.
func (t *tenant) memberAsk(w *planning.Weighed) approval.Ask {
	ask := t.planAsk(w, "")
	ask.ByPerson = false
	t.compareInstalled(&ask.Evidence, w.Package, w.Paths)
	return ask
}
