package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Accounted is what became of what was found on a disk.
type Accounted struct {
	// End is why the sandbox is to be ended, a sentence; "": it is not.
	End string
}

// Installed records what was found on a sandbox's disk, see inventory.Accounts. Whether the sandbox is
// to be ended is known after an error, too.
func (c *Controller) Installed(ctx context.Context, sandbox string, disk provenance.Disk) (Accounted, error) {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return Accounted{}, err
	}
	if t.run.Plan {
		return Accounted{}, nil // what a resolver unpacked to read it is no installation
	}
	err = t.disk.Record(ctx, disk)
	return Accounted{End: t.disk.End()}, err
}

// InventoryUnknown records that a sandbox's packages could not be listed after a
// command. Where the sandbox lives that is an alarm, since it may hide some. Whether the sandbox is to be
// ended is known after an error, too.
func (c *Controller) InventoryUnknown(ctx context.Context, sandbox, cause string, lives bool) (Accounted, error) {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return Accounted{}, err
	}
	if t.run.Plan {
		return Accounted{}, nil
	}
	err = t.disk.Unknown(ctx, cause, lives)
	return Accounted{End: t.disk.End()}, err
}

// MustEnd is why a sandbox is to be ended by what was found on its disk; "": it
// is not.
func (c *Controller) MustEnd(sandbox string) string {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return ""
	}
	return t.disk.End()
}

// usableRecords returns the earlier records of a release, as far as this run may have what they
// are about: nothing burns it by now, and what came under another policy is let in by
// this run's own.
func (t *tenant) usableRecords(ctx context.Context, earlier *provenance.Earlier, release pkgref.Ref) ([]audit.Record, error) {
	served, err := earlier.Of(ctx, t.known.config.Log, release)
	if err != nil || len(served) == 0 {
		return nil, err
	}
	from := t.ledger.Origin(release)
	about, err := t.known.subject(release, from)
	if err != nil {
		return nil, err
	}
	if about.Approvals, err = t.known.answers(ctx, release); err != nil {
		return nil, err
	}
	t.require(&about, release)
	judge := t.known.newJudge(about)
	now, law := judge.Release(release.Version), t.policy()
	return slices.DeleteFunc(served, func(r audit.Record) bool {
		if r.Policy == law.Digest() && len(law.Layers()) == 1 {
			return forGood(now)
		}
		return judge.Kept(release.Version, []string{"sha256:" + r.SHA256}).Effect != policy.Allow
	}), nil
}

// forGood tells a denial that stands whatever else this run may read, from one that is
// for want of what an earlier run under the same policy had read.
func forGood(d policy.Decision) bool {
	switch d.ResolvedBy {
	case policy.ByBlocklist, policy.ByLockfile, policy.ByCanonical:
		return d.Effect == policy.Deny
	case policy.ByAdvisory:
		return d.Effect == policy.Deny && d.Alarm
	default:
		return false
	}
}
