package admission

import (
	"context"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
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
	if !t.run.Narrowing.IsZero() {
		detail[detailNarrowing] = narrowingText(t.run.Narrowing)
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

// SandboxLost records the end of a sandbox that the log knows to have begun, and
// not to have ended. It need not be registered: what it was is lost with it.
func (c *Controller) SandboxLost(ctx context.Context, sandbox, reason string) error {
	var began *audit.Record
	for r, err := range c.config.Log.Records(ctx, audit.Filter{Sandbox: sandbox, Kinds: []audit.Kind{audit.KindSandbox}}) {
		if err != nil {
			return err
		}
		switch r.Outcome { //nolint:exhaustive // only its two ends count
		case audit.Started:
			began = &r
		case audit.Finished:
			began = nil
		}
	}
	if began == nil {
		return nil
	}
	_, err := c.config.Log.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Finished, Run: began.Run, Sandbox: sandbox, Policy: began.Policy, User: began.User, Reason: clip(reason, 1_024),
	})
	return err
}
