package admission

import (
	"context"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Restore registers a sandbox that outlived the daemon, with what the log knows
// of it: refusals, quotas, what was served, claimed and found, which commands
// ran; of a copy, what came with it, too. Lost are repeats of refusals since they were last recorded, and the
// requirements of metadata: clients ask for that again, or are refused.
func (c *Controller) Restore(ctx context.Context, r Run) error {
	if r.Sandbox == "" || r.Run == "" || r.Policy == nil {
		return fault.Invalid("a sandbox is restored with its id, its run and its policy; one is missing")
	}
	t := newTenant(r, &c.config, c.remembered)
	if err := c.inherit(ctx, t); err != nil {
		return err
	}
	for rec, err := range c.config.Log.Records(ctx, audit.Filter{Sandbox: r.Sandbox, FromSeq: r.First}) {
		if err != nil {
			return err
		}
		t.replay(rec, c.config.Limits)
	}
	if err := t.ledger.FollowLock(); err != nil {
		return err
	}
	return c.add(t)
}

// replay takes one record of this sandbox as if it had just been made. Nobody
// else knows the tenant yet.
func (t *tenant) replay(r audit.Record, limits Limits) {
	t.noted(r.Seq)
	if r.RequestID != "" {
		t.ids[r.RequestID] = true
	}
	if counts(r) {
		t.used++
	}
	switch r.Kind {
	case audit.KindPackage, audit.KindNetwork:
		t.replayAsk(r, limits)
	case audit.KindCommand:
		t.replayCommand(r, limits)
	case audit.KindSandbox:
		if r.Outcome == audit.Exceeded {
			t.cut, t.cutTold = true, true
		}
		t.narrowing.replay(r)
		t.replayLaw(r)
	case audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild:
	}
}

func (t *tenant) replayAsk(r audit.Record, limits Limits) {
	switch r.Outcome {
	case audit.Served:
		t.had(r)
		t.serve(r)
	case audit.Aborted:
		if seq, err := strconv.ParseUint(r.Detail[detailServed], 10, 64); err == nil && t.served[seq] != nil {
			t.served[seq].aborted = true
		}
	case audit.Shown:
		t.displayed[shownKeyOf(r)] = nil
	case audit.Installed, audit.Alarm:
		t.accounts.take(r)
	case audit.Blocked, audit.Withheld, audit.Failed, audit.Exceeded, audit.Pending:
		t.replayRefusal(r, limits)
	case audit.Started, audit.Finished, audit.Approved, audit.Denied, audit.Expired, audit.Superseded, audit.Planned,
		audit.Frozen, audit.Thawed, audit.Paused, audit.Resumed, audit.Snapshotted, audit.Restored, audit.Adopted, audit.Extended, audit.Narrowed,
		audit.Sealed, audit.Erased, audit.Rotated: // of no ask that a restart has to know
	}
}

func (t *tenant) replayRefusal(r audit.Record, limits Limits) {
	t.accounts.take(r) // of the disk's, too many packages
	known := t.refusals[keyOf(r)]
	if known != nil {
		n := max(1, r.Count)
		known.count, known.told = known.count+n, known.told+n
		return
	}
	if r.Kind == audit.KindNetwork && r.Outcome == audit.Blocked {
		t.names[r.Detail[detailName]] = true
	}
	f := &refusal{ready: make(chan struct{}), record: r, count: 1, told: 1}
	close(f.ready)
	t.refusals[keyOf(r)] = f
	t.show(f, limits.Refusals)
}

func (t *tenant) replayCommand(r audit.Record, limits Limits) {
	id := r.Detail[detailCommand]
	if r.Outcome == audit.Finished {
		delete(t.running, id)
		t.finished[id] = true
		return
	}
	t.command(r, r.Command, limits)
}
