package admission

import (
	"context"
	"errors"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
)

// SandboxStarted records that a registered sandbox begins, before it does.
func (c *Controller) SandboxStarted(ctx context.Context, sandbox string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	detail := map[string]string{"template": t.run.Template, "policy_source": excerpt.Of(t.policy().Source(), 4_096)}
	if t.run.Lock != nil {
		detailLock(detail, t.run.Lock)
	}
	if t.run.Token != "" {
		detail["token"] = t.run.Token
	}
	if t.run.Plan {
		detail[detailPlan] = "true"
	}
	if !t.run.Narrowing.IsZero() {
		detail[detailNarrowing] = narrowingText(t.run.Narrowing)
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Started, User: t.run.User, Task: excerpt.Of(t.run.Task, 8_192), Detail: detail,
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
		files = append(files, f.Digest+" "+excerpt.Of(f.Name, 1_024))
	}
	detail["lockfiles"] = excerpt.Of(strings.Join(files, "\n"), 16_384)
}

// SandboxEnded records how often refusals were repeated and that the sandbox is
// gone, with the reason.
func (c *Controller) SandboxEnded(ctx context.Context, sandbox, reason string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	if err := t.book.Summarise(ctx); err != nil {
		return err
	}
	if err := t.abortAll(ctx, "the sandbox ended while it was sent"); err != nil && !errors.Is(err, fault.ErrForbidden) { // past its quota there are no more records of it
		return err
	}
	_, err = t.book.Append(ctx, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Finished, User: t.run.User, Reason: excerpt.Of(reason, 1_024)})
	return err
}
