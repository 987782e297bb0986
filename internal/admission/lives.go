package admission

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
)

// SandboxAdopted records that a new daemon took a sandbox over.
func (c *Controller) SandboxAdopted(ctx context.Context, sandbox, state string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Adopted, User: t.run.User, Detail: map[string]string{"state": state},
	})
	return err
}

// SandboxExtended records that a sandbox's end was moved: how long it lives from now
// on, how long it may be idle (0: without end), and what becomes of it then.
func (c *Controller) SandboxExtended(ctx context.Context, sandbox string, ttl, idle time.Duration, then string) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	detail := map[string]string{}
	for key, d := range map[string]time.Duration{"ttl": ttl, "idle": idle} {
		if d > 0 {
			detail[key] = d.String()
		}
	}
	if then != "" {
		detail["then"] = then
	}
	_, err = t.book.Append(ctx, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Extended, User: t.run.User, Detail: detail})
	return err
}

// FirstRecord is the number of a registered sandbox's first record: where Restore and
// SandboxLostSince need to begin to read. 0 if there is none, or it is not known.
func (c *Controller) FirstRecord(sandbox string) uint64 {
	t, err := c.tenant(sandbox)
	if err != nil {
		return 0
	}
	first, _, _ := t.book.Range()
	return first
}

// SandboxLost is SandboxLostSince for a sandbox whose first record is not known.
func (c *Controller) SandboxLost(ctx context.Context, sandbox, reason string) error {
	return c.SandboxLostSince(ctx, sandbox, 0, reason)
}

// SandboxLostSince records the end of a sandbox that the log knows to have begun, and
// not to have ended, in its records from first on. It need not be registered: what it
// was is lost with it.
func (c *Controller) SandboxLostSince(ctx context.Context, sandbox string, first uint64, reason string) error {
	var began *audit.Record
	for r, err := range c.config.Log.Records(ctx, audit.Filter{Sandbox: sandbox, Kinds: []audit.Kind{audit.KindSandbox}, FromSeq: first}) {
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
		Kind: audit.KindSandbox, Outcome: audit.Finished, Run: began.Run, Sandbox: sandbox, Policy: began.Policy, User: began.User, Reason: excerpt.Of(reason, 1_024),
	})
	return err
}
