package admission

import (
	"context"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// SandboxStarted records that a registered sandbox begins, before it does.
func (c *Controller) SandboxStarted(ctx context.Context, sandbox string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	detail := map[string]string{"template": t.run.Template, "policy_source": clip(t.run.Policy.Source(), 4_096)}
	if t.run.Lock != nil {
		detailLock(detail, t.run.Lock)
	}
	if t.run.Plan {
		detail[detailPlan] = "true"
	}
	_, err = c.record(ctx, t, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Started, User: t.run.User, Task: clip(t.run.Task, 8_192), Detail: detail,
	})
	return err
}

// detailLock tells which lockfiles a run is held to, and whether they are
// trusted: that trust is given to these digests and to no others.
func detailLock(detail map[string]string, set *lockfile.Set) {
	detail["lockfiles_digest"], detail["lockfiles_mode"] = set.Digest(), string(set.Mode())
	if set.Trusted() {
		detail["lockfiles_trusted"] = "true"
	}
	var files []string
	for _, f := range set.Files() {
		files = append(files, f.Digest+" "+clip(f.Name, 1_024))
	}
	detail["lockfiles"] = clip(strings.Join(files, "\n"), 16_384)
}

// SandboxEnded records how often refusals were repeated and that the sandbox is
// gone, with the reason.
func (c *Controller) SandboxEnded(ctx context.Context, sandbox, reason string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	if err := c.summarise(ctx, t); err != nil {
		return err
	}
	_, err = c.record(ctx, t, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Finished, User: t.run.User, Reason: clip(reason, 1_024)})
	return err
}

// Installed records the packages that the inventory shows and the baseline (the
// template's own) does not, each once, joined with what was served to the
// sandbox. One that was not served is marked as unaccounted for. All of it is
// the guest's claim.
func (c *Controller) Installed(ctx context.Context, sandbox string, inventory, baseline channel.Inventory) error {
	t, err := c.admit(ctx, sandbox)
	if err != nil {
		return err
	}
	if t.run.Plan {
		return nil // what a resolver unpacked to read it is no installation
	}
	own := map[pkgref.Ref]bool{}
	for _, p := range baseline.Packages {
		own[releaseOf(installedRef(p))] = true
	}
	left := c.config.Limits.Inventory
	for _, p := range inventory.Packages {
		ref := installedRef(p)
		if own[releaseOf(ref)] {
			continue
		}
		if left--; left < 0 {
			return c.tooManyInstalled(ctx, t)
		}
		if err := c.recordInstalled(ctx, t, ref, p); err != nil {
			return err
		}
	}
	if inventory.Truncated {
		return c.tooManyInstalled(ctx, t)
	}
	return nil
}

// installedRef names an installed release: canonically if it can be.
func installedRef(p channel.InstalledPackage) pkgref.Ref {
	ref, err := pkgref.New(pkgref.Ecosystem(p.Ecosystem), p.Name, p.Version)
	if err != nil {
		ref = pkgref.Ref{Ecosystem: pkgref.Ecosystem(clip(p.Ecosystem, 32)), Name: clip(p.Name, 256), Version: clip(p.Version, 256)}
	}
	return ref
}

func (c *Controller) recordInstalled(ctx context.Context, t *tenant, ref pkgref.Ref, p channel.InstalledPackage) error {
	key := releaseOf(ref)
	t.mu.Lock()
	known, served, outer := t.found[key], t.ledger[key], t.brought[key]
	t.found[key] = true
	t.mu.Unlock()
	if known {
		return nil
	}
	r := audit.Record{Kind: audit.KindPackage, Outcome: audit.Installed, GuestClaimed: true, Detail: map[string]string{"path": clip(p.Path, 4_096)}}
	setRef(&r, ref)
	switch {
	case served == nil && outer != "":
		r.Detail[detailBundledIn] = outer
		r.Reason = "it came inside of " + outer
	case served == nil:
		r.Detail[detailUnaccounted] = "true"
		r.Reason = "it is on the sandbox's disk, but nothing of it was served to this sandbox"
	default:
		s := served.record
		r.InstalledVersion, r.SourceURL, r.SHA256, r.File, r.Size = s.InstalledVersion, s.SourceURL, s.SHA256, s.File, s.Size
		r.RequestedVersion, r.RequestedClaimed, r.ResolvedBy, r.Rule, r.RequestID = s.RequestedVersion, s.RequestedClaimed, s.ResolvedBy, s.Rule, s.RequestID
	}
	if _, err := c.record(ctx, t, r); err != nil {
		t.mu.Lock()
		delete(t.found, key)
		t.mu.Unlock()
		return err
	}
	return nil
}

func (c *Controller) tooManyInstalled(ctx context.Context, t *tenant) error {
	_, err := c.refuse(ctx, t, audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Exceeded, Rule: "quota.inventory", GuestClaimed: true,
		Reason: "the sandbox lists more packages than are recorded at one time; the rest is not recorded",
	})
	return err
}
