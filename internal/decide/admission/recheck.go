package admission

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const eventRecheck = "recheck"

// Recheck judges all releases that a sandbox has, those of its ancestors included, by what is known
// today: before it goes on after a pause, and before a copy of it starts. Only advisories of
// malware and the policy's blocklist count, since the rest was weighed when it was let in. A
// release that they refuse is recorded, and is a fault.ErrForbidden that names it; so is what was
// found on its disk and for which its policy ends it. Facts that can't be read are a
// fault.ErrUnavailable.
func (c *Controller) Recheck(ctx context.Context, sandbox string) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	return t.recheck(ctx, t.rejudge)
}

// RecheckCopy is Recheck of a sandbox that is about to begin as a copy. A release that was let in
// under another policy than its own must be allowed by its own, too: by its lists, or by a person.
func (c *Controller) RecheckCopy(ctx context.Context, sandbox string) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	if err := t.recheckSystem(ctx); err != nil {
		return err
	}
	others := t.underOthers()
	return t.recheck(ctx, func(ctx context.Context, release pkgref.Ref) (*audit.Record, error) {
		r, err := t.rejudge(ctx, release)
		if r != nil || err != nil {
			return r, err
		}
		return t.rejudgeFiles(ctx, release, others[release.Release()])
	})
}

// rejudgement returns the record of a refusal; nil: there is none.
type rejudgement func(ctx context.Context, release pkgref.Ref) (*audit.Record, error)

func (t *tenant) recheck(ctx context.Context, again rejudgement) error {
	if err := t.book.Open(ctx); err != nil {
		return err
	}
	if why := t.disk.End(); why != "" {
		return fault.New(fault.ErrForbidden, "it must not go on: %s (packages.unaccounted: end)", why)
	}
	var first *audit.Record
	refused := 0
	for _, release := range t.listReleases() {
		r, err := again(ctx, release)
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
			records.RefOf(*first), first.Reason, first.Rule, first.RequestID)
	}
	return fault.New(fault.ErrForbidden, "%s and %d more releases are in it, and would be refused today: %s (rule %s, request %s)",
		records.RefOf(*first), refused-1, first.Reason, first.Rule, first.RequestID)
}

// listReleases lists the releases that a sandbox was served, or that were found in it,
// whether or not they are still there; sorted.
func (t *tenant) listReleases() []pkgref.Ref {
	all := map[pkgref.Ref]pkgref.Ref{} // as it is called, by its one key
	for _, p := range t.disk.Packages() {
		all[p.Ref.Release()] = p.Ref
	}
	for release := range t.served.Brought() {
		all[release] = release
	}
	for _, r := range t.served.All() {
		all[records.RefOf(r).Release()] = records.RefOf(r)
	}
	return slices.SortedFunc(maps.Values(all), pkgref.Ref.CompareSpelled)
}

// rejudge goes by what burns.
func (t *tenant) rejudge(ctx context.Context, release pkgref.Ref) (*audit.Record, error) {
	about := policy.Subject{Package: release.Project()}
	if t.known.config.Advisories != nil {
		facts, err := t.known.config.Advisories.Facts(about.Package)
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "what is known of %s can't be read, so the sandbox %s must not go on", about.Package, t.run.Sandbox)
		}
		about.Malware = facts.Malware
	}
	for _, law := range t.policy().Layers() { // each alone: what one says for now hides no other's list
		judge := t.known.judgeBy(law, about)
		d := judge.Name() // of one without a version, or with one that is none, this is all that can be said
		if !isBurned(d) {
			d = judge.Release(release.Version)
		}
		if isBurned(d) {
			return t.refuseKept(ctx, release, d)
		}
	}
	return nil, nil //nolint:nilnil // no refusal is a good answer
}

// rejudgeFiles asks all that the sandbox's policy asks of a release, for files with
// these digests.
func (t *tenant) rejudgeFiles(ctx context.Context, release pkgref.Ref, digests []string) (*audit.Record, error) {
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
	judge := t.known.newJudge(about)
	for _, digest := range digests {
		if d := judge.Kept(release.Version, []string{"sha256:" + digest}); d.Effect != policy.Allow {
			return t.refuseKept(ctx, release, d)
		}
	}
	return nil, nil //nolint:nilnil // as in rejudge
}

// underOthers are the digests of the files that were served under other policies than
// the sandbox's own, by release.
func (t *tenant) underOthers() map[pkgref.Ref][]string {
	files := map[pkgref.Ref][]string{}
	own := t.policy().Digest()
	for _, r := range t.served.All() {
		if release := records.RefOf(r).Release(); r.Policy != own {
			files[release] = append(files[release], r.SHA256)
		}
	}
	return files
}

// refuseKept puts on record that what is in a sandbox would be refused.
func (t *tenant) refuseKept(ctx context.Context, release pkgref.Ref, d policy.Decision) (*audit.Record, error) {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Blocked, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: map[string]string{records.DetailEvent: eventRecheck},
	}
	records.SetRef(&r, release)
	if d.Alarm {
		r.Detail[records.DetailAlarm] = "true"
	}
	r, err := t.book.Refuse(ctx, r)
	return &r, err
}

// isBurned tells whether a decision is by a list or an advisory.
func isBurned(d policy.Decision) bool {
	return d.Effect == policy.Deny && (d.ResolvedBy == policy.ByBlocklist || d.ResolvedBy == policy.ByAdvisory)
}
