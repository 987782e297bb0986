package admission

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// FreezeChange is a step of a sandbox on its way to disk or back.
type FreezeChange struct {
	Outcome   audit.Outcome // Frozen, Thawed, or Failed: it waits unfrozen
	Approvals []string      // that it waits or waited for
	Bytes     int64         // of its image on disk
	Took      time.Duration // to freeze or to thaw
	Frozen    time.Duration // how long it was
	Files     bool          // of a pause: only the files are kept, and it starts anew
	Reason    string        // of Failed
}

// SandboxFroze records that a sandbox was frozen, has thawed, or waits unfrozen
// though its policy says freeze.
func (l *Lives) SandboxFroze(ctx context.Context, sandbox string, change FreezeChange) error {
	t, err := l.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	if change.Outcome == audit.Frozen || change.Outcome == audit.Paused {
		t.hosts.Sleep()
	}
	r := audit.Record{
		Kind: audit.KindSandbox, Outcome: change.Outcome, User: t.run.User, Reason: redact.Cut(change.Reason, 1_024), Detail: map[string]string{},
	}
	if len(change.Approvals) > 0 {
		r.Approval = change.Approvals[0]
		r.Detail["approvals"] = redact.Cut(strings.Join(change.Approvals, " "), 4_096)
	}
	if change.Files {
		r.Detail["contents"] = "files"
	}
	if change.Bytes > 0 {
		r.Detail["image_bytes"] = strconv.FormatInt(change.Bytes, 10)
	}
	if change.Took > 0 {
		r.Detail[detailTook] = strconv.FormatInt(change.Took.Milliseconds(), 10)
	}
	if change.Frozen > 0 {
		r.Detail["frozen_ms"] = strconv.FormatInt(change.Frozen.Milliseconds(), 10)
	}
	_, err = t.book.Append(ctx, r)
	return err
}
