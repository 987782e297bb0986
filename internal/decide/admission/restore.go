package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Restore registers a sandbox that outlived the daemon, with what the log knows
// of it: refusals, quotas, what was served, claimed and found, which commands
// ran; of a copy, what came with it, too. Lost are repeats of refusals since they were last recorded, and the
// requirements of metadata: clients ask for that again, or are refused.
func (c *Controller) Restore(ctx context.Context, r Run) error {
	if r.Sandbox == "" || r.Run == "" || r.Policy == nil {
		return fault.Invalid("a sandbox is restored with its id, its run and its policy; one is missing")
	}
	t := newTenant(r, &c.config, c.remembered, &c.earlier, c.desk)
	err := refill(ctx, c, t)
	if err == nil {
		err = caller{t}.endLost(ctx)
	}
	if err != nil {
		t.forgetTenant()
		return err
	}
	return c.addTenant(t)
}

// refill has a tenant know what its own records and its ancestors' tell.
func refill(ctx context.Context, c *Controller, t *tenant) error {
	if err := c.inherit(ctx, t); err != nil {
		return err
	}
	for rec, err := range c.config.Log.Records(ctx, audit.Filter{Sandbox: t.run.Sandbox, FromSeq: t.run.First}) {
		if err != nil {
			return err
		}
		t.replayRecord(rec, c.config.Limits)
	}
	return t.ledger.FollowLock()
}

// replayRecord takes one record of this sandbox as if it had just been made. Nobody
// else knows the tenant yet.
func (t *tenant) replayRecord(r audit.Record, limits Limits) {
	t.book.Replay(r)
	switch r.Kind {
	case audit.KindPackage, audit.KindNetwork:
		t.replayAsk(r)
		hostAsker{t}.replayRecord(r, limits)
		t.requests.replayRecord(r)
		t.former.replayRecord(r)
		if r.Kind == audit.KindNetwork {
			t.lookups.replayRecord(r, limits)
		}
	case audit.KindCommand:
		t.replayCommand(r, limits)
	case audit.KindTool:
		caller{t}.replayRecord(r)
	case audit.KindSandbox:
		t.replayLife(r)
	case audit.KindFinding:
		t.book.ReplayRefusal(r)
	case audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild, audit.KindFile:
	}
}

// replayLife takes from a record of the sandbox, or of one that it is a copy of, what
// closes it.
func (t *tenant) replayLife(r audit.Record) {
	if r.Outcome == audit.Exceeded {
		t.book.ReplayCut()
	}
	t.narrowing.replayRecord(r)
	t.replayLaw(r)
}

// replayServed takes a file that was served to the sandbox, or to one that it is a copy of.
func (t *tenant) replayServed(r audit.Record) {
	through := r.Detail[records.DetailThrough]
	t.ledger.Recall(records.RefOf(r), ledger.Event{
		Kind: ledger.Allowed, Through: through, File: r.File,
		ByEdge: r.ResolvedBy == string(policy.ByDependency) || through != "" && through != r.Rule && r.ResolvedBy == string(policy.ByAllowlist),
	})
	t.served.Add(r)
	t.book.Served(records.RefOf(r))
}

func (t *tenant) replayAsk(r audit.Record) {
	if r.Ecosystem == SystemEcosystem {
		t.system.takeRecord(t.served, r)
		return
	}
	switch r.Outcome {
	case audit.Served:
		t.replayServed(r)
	case audit.Installed, audit.Alarm:
		t.disk.Take(r)
	case audit.Blocked, audit.Withheld, audit.Failed, audit.Exceeded, audit.Pending, audit.WouldDeny, audit.WouldHold:
		t.disk.Take(r) // of the disk's, too many packages
		t.book.ReplayRefusal(r)
	case audit.Asked:
		t.book.ReplayAsked(r)
	case audit.Finished:
		if r.Detail[records.DetailRequest] != "" {
			break // its connection's end has its bytes, too
		}
		t.hosts.Carry(bytesOf(r, records.DetailBytesOut))
		t.hosts.Carry(bytesOf(r, records.DetailBytesIn))
	case audit.Aborted, audit.Built, audit.Shown, audit.Found, audit.Started, audit.Approved, audit.Denied, audit.Expired, audit.Superseded, audit.Planned,
		audit.Frozen, audit.Thawed, audit.Paused, audit.Resumed, audit.Snapshotted, audit.Restored, audit.Adopted, audit.Extended, audit.Used, audit.Narrowed,
		audit.Sealed, audit.Erased, audit.Rotated: // of no ask that a restart has to know more of
	}
}

func (t *tenant) replayCommand(r audit.Record, limits Limits) {
	if r.Outcome == audit.Finished {
		t.mu.Lock()
		defer t.mu.Unlock()
		id := r.Detail[records.DetailCommand]
		delete(t.running, id)
		t.finished[id] = true
		return
	}
	t.takeCommand(r, r.Command, limits)
}
