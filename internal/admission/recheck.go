package admission

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

const eventRecheck = "recheck"

// Recheck judges all releases that a sandbox has, those of its ancestors included,
// by what is known today: before it goes on after a pause, and before a copy of it
// starts. Only advisories of malware and the policy's blocklist count, since the
// rest was weighed when it was let in. What they refuse is recorded, and is a
// fault.ErrForbidden that names it; so is what was found on its disk and for which
// its policy ends it. Facts that can't be read are a fault.ErrUnavailable.
func (c *Controller) Recheck(ctx context.Context, sandbox string) error {
	return c.recheck(ctx, sandbox, c.rejudge)
}

// RecheckCopy is Recheck of a sandbox that is about to begin as a copy. What was let
// in under another policy than its own must be allowed by its own, too: by its lists,
// or by a person.
func (c *Controller) RecheckCopy(ctx context.Context, sandbox string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	others := t.underOthers()
	return c.recheck(ctx, sandbox, func(ctx context.Context, t *tenant, release pkgref.Ref) (*audit.Record, error) {
		r, err := c.rejudge(ctx, t, release)
		if r != nil || err != nil {
			return r, err
		}
		return c.rejudgeFiles(ctx, t, release, others[release.Release()])
	})
}

// rejudgement returns the record of a refusal; nil: there is none.
type rejudgement func(ctx context.Context, t *tenant, release pkgref.Ref) (*audit.Record, error)

func (c *Controller) recheck(ctx context.Context, sandbox string, again rejudgement) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	if t.isCut() {
		return c.cutOff(ctx, t)
	}
	if why := t.ending(); why != "" {
		return fault.New(fault.ErrForbidden, "it must not go on: %s (packages.unaccounted: end)", why)
	}
	var first *audit.Record
	refused := 0
	for _, release := range t.has() {
		r, err := again(ctx, t, release)
		if err != nil {
			return err
		}
		if r != nil {
			first, refused = cmp.Or(first, r), refused+1
		}
	}
	switch refused {
	case 0:
		return nil
	case 1:
		return fault.New(fault.ErrForbidden, "%s is in it, and would be refused today: %s (rule %s, request %s)",
			refOf(*first), first.Reason, first.Rule, first.RequestID)
	}
	return fault.New(fault.ErrForbidden, "%s and %d more releases are in it, and would be refused today: %s (rule %s, request %s)",
		refOf(*first), refused-1, first.Reason, first.Rule, first.RequestID)
}

// has are the releases that a sandbox was served, or that were found in it,
// whether or not they are still there; sorted.
func (t *tenant) has() []pkgref.Ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[pkgref.Ref]pkgref.Ref{} // as it is called, by its one key
	for key := range t.accounts.recorded {
		all[key.release] = key.release
	}
	for release := range t.brought {
		all[release] = release
	}
	for _, f := range t.served {
		all[refOf(f.record).Release()] = refOf(f.record)
	}
	return slices.SortedFunc(maps.Values(all), pkgref.Ref.CompareSpelled)
}

// rejudge goes by what burns.
func (c *Controller) rejudge(ctx context.Context, t *tenant, release pkgref.Ref) (*audit.Record, error) {
	about := policy.Subject{Package: release.Project()}
	if c.config.Advisories != nil {
		facts, err := c.config.Advisories.Facts(about.Package)
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "what is known of %s can't be read, so the sandbox %s must not go on", about.Package, t.run.Sandbox)
		}
		about.Malware = facts.Malware
	}
	judge := t.known.judge(about)
	d := judge.Name() // of one without a version, or with one that is none, this is all that can be said
	if !burns(d) {
		d = judge.Release(release.Version)
	}
	if !burns(d) {
		return nil, nil //nolint:nilnil // no refusal is a good answer
	}
	return c.refuseKept(ctx, t, release, d)
}

// rejudgeFiles asks all that the sandbox's policy asks of a release, for files with
// these digests.
func (c *Controller) rejudgeFiles(ctx context.Context, t *tenant, release pkgref.Ref, digests []string) (*audit.Record, error) {
	if len(digests) == 0 {
		return nil, nil //nolint:nilnil // as in rejudge
	}
	about, err := t.known.subject(release, t.ledger.Origin(release))
	if err != nil {
		return nil, err
	}
	if about.Approvals, err = t.known.answers(ctx, release); err != nil {
		return nil, err
	}
	t.require(&about, release)
	judge := t.known.judge(about)
	for _, digest := range digests {
		if d := judge.Kept(release.Version, []string{"sha256:" + digest}); d.Effect != policy.Allow {
			return c.refuseKept(ctx, t, release, d)
		}
	}
	return nil, nil //nolint:nilnil // as in rejudge
}

// underOthers are the digests of the files that were served under other policies than
// the sandbox's own, by release.
func (t *tenant) underOthers() map[pkgref.Ref][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	files := map[pkgref.Ref][]string{}
	own := t.policy().Digest()
	for _, f := range t.served {
		if release := refOf(f.record).Release(); f.record.Policy != own {
			files[release] = append(files[release], f.record.SHA256)
		}
	}
	return files
}

// refuseKept puts on record that what is in a sandbox would be refused.
func (c *Controller) refuseKept(ctx context.Context, t *tenant, release pkgref.Ref, d policy.Decision) (*audit.Record, error) {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Blocked, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: map[string]string{detailEvent: eventRecheck},
	}
	setRef(&r, release)
	if d.Alarm {
		r.Detail[detailAlarm] = "true"
	}
	r, err := c.refuse(ctx, t, r)
	return &r, err
}

// burns tells whether a decision is by a list or an advisory.
func burns(d policy.Decision) bool {
	return d.Effect == policy.Deny && (d.ResolvedBy == policy.ByBlocklist || d.ResolvedBy == policy.ByAdvisory)
}
