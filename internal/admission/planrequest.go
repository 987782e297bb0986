package admission

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// plannedRecord is the record of a verdict.
func plannedRecord(w *Weighed) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Planned, SourceURL: w.Source,
		ResolvedBy: string(w.Verdict.ResolvedBy), Rule: w.Verdict.Rule, Reason: w.Verdict.Reason,
		Detail: map[string]string{detailEffect: string(w.Verdict.Effect)},
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
func (c *Controller) RequestPlan(ctx context.Context, run, because string, p *Plan) error {
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
		r, err := c.file(ctx, t.planWish(w, because))
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

func (t *tenant) planWish(w *Weighed, because string) approval.Ask {
	var wanted []string
	for _, by := range w.WantedBy {
		wanted = append(wanted, by.Text(w.Package))
	}
	return approval.Ask{
		Package: w.Package, Upstream: w.Upstream, Files: w.Files,
		Run: t.run.Run, Sandbox: t.run.Sandbox, Policy: t.policy().Digest(), PolicyName: t.policy().Source(),
		Token: t.run.Token, User: t.run.User, ByPerson: t.run.Token == "", Task: t.run.Task, Because: because, WantedBy: wanted,
		Rule: w.Verdict.Rule, Reason: w.Verdict.Reason, Evidence: w.Evidence,
	}
}
