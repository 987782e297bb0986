package admission

import (
	"cmp"
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Refusals implements Door.
func (c *Controller) Refusals(_ context.Context, sandbox, request string, most int) ([]door.Refusal, error) {
	t, err := c.tenant(sandbox)
	if err != nil {
		return nil, err
	}
	return t.told(request, most), nil
}

// told are the refusals that are shown, at most most, or those under a request's id,
// shown or not.
func (t *tenant) told(request string, most int) []door.Refusal {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []door.Refusal{}
	if request != "" {
		for _, r := range t.under(request) {
			list = append(list, r.public())
		}
		return list
	}
	if most <= 0 || most > len(t.shown) {
		most = len(t.shown)
	}
	wanted, had := wantedPaths{}, newHad()
	for _, r := range t.shown {
		wanted.add(refOf(r.record))
	}
	for p, f := range t.files {
		wanted.add(p)
		had.take(f.record)
	}
	for _, r := range t.shown[len(t.shown)-most:] {
		if !isProbe(r.record, wanted, had) {
			list = append(list, r.public())
		}
	}
	slices.SortStableFunc(list, func(a, b door.Refusal) int { return alarmFirst(a.Alarm, b.Alarm) })
	return list
}

// under are the refusals with a request's id, the client's or the queue's; the
// tenant's mu is held. A client is told the id of what a page withholds also where it
// got another release, and that is not shown any more.
func (t *tenant) under(request string) []*refusal {
	var found []*refusal
	take := func(r *refusal) {
		if r.recorded() && (r.record.RequestID == request || r.record.Approval == request) && !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	for _, r := range t.refusals {
		take(r)
	}
	for _, r := range t.shown { // a refused command is in no other place
		take(r)
	}
	slices.SortFunc(found, func(a, b *refusal) int { return cmp.Compare(a.record.Seq, b.record.Seq) })
	return found
}

// recorded tells whether the refusal's record may be read.
func (r *refusal) recorded() bool {
	if r.ready == nil { // a command's
		return true
	}
	select {
	case <-r.ready:
		return r.err == nil
	default:
		return false
	}
}

// Sought says which refusals are meant: of a run, or of one of its sandboxes; with a
// Request only those under that id.
type Sought struct{ Run, Sandbox, Request string }

// Told are a run's refusals in the words of Refusals, whether it lives or is long over:
// of a sandbox that lives what is known of it, of another what the log has. What a copy
// inherited is told of its source. fault.ErrNotFound if the log has nothing of the run,
// or nothing was refused under the request's id.
func (c *Controller) Told(ctx context.Context, s Sought) ([]door.Refusal, error) {
	if s.Run == "" && s.Sandbox == "" {
		return nil, fault.Invalid("refusals are of a run or of a sandbox; name one")
	}
	over, order := map[string]*tenant{}, []*tenant{} // in order those that live, too
	for r, err := range c.config.Log.Records(ctx, audit.Filter{Run: s.Run, Sandbox: s.Sandbox}) {
		if err != nil {
			return nil, err
		}
		t, met := over[r.Sandbox] // nil: it lives
		if !met {
			if live, err := c.tenant(r.Sandbox); err == nil {
				order = append(order, live)
			} else {
				t = newTenant(Run{Sandbox: r.Sandbox, Run: r.Run}, &c.config, ledger.NewBudget(leastRemembered, leastRemembered))
				order = append(order, t)
			}
			over[r.Sandbox] = t
		}
		if t != nil {
			t.recall(r, c.config.Limits)
		}
	}
	if len(order) == 0 {
		return nil, fault.New(fault.ErrNotFound, "there is no run %q on record", clip(cmp.Or(s.Run, s.Sandbox), 200))
	}
	list := []door.Refusal{}
	for _, t := range order {
		list = append(list, t.told(s.Request, 0)...)
	}
	if s.Request != "" && len(list) == 0 {
		return nil, fault.New(fault.ErrNotFound, "nothing was refused under the id %q", clip(s.Request, 40))
	}
	slices.SortStableFunc(list, func(a, b door.Refusal) int {
		return cmp.Or(alarmFirst(a.Alarm, b.Alarm), a.Time.Compare(b.Time))
	})
	return list, nil
}

// recall takes one record of a sandbox that is over, as far as it says what was
// refused. Nobody else knows the tenant.
func (t *tenant) recall(r audit.Record, limits Limits) {
	switch r.Kind {
	case audit.KindPackage, audit.KindNetwork:
		switch r.Outcome { //nolint:exhaustive // the others refuse nothing
		case audit.Served:
			t.serve(r)
		case audit.Blocked, audit.Withheld, audit.Failed, audit.Exceeded, audit.Pending:
			t.replayRefusal(r, limits)
		}
	case audit.KindCommand:
		if r.Outcome == audit.Blocked {
			t.command(r, nil, limits)
		}
	case audit.KindSandbox, audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild:
	}
}

// public is a refusal as its sandbox's agent may read it.
func (r *refusal) public() door.Refusal {
	rec := r.record
	out := door.Refusal{
		Time: rec.Time, Run: rec.Run, Sandbox: rec.Sandbox, Package: refOf(rec), File: rec.File, What: whatPackage, Name: rec.Detail[detailName],
		Outcome: string(rec.Outcome), Rule: rec.Rule, Reason: rec.Reason,
		Suggest: rec.Detail[detailSuggest], RequestID: rec.RequestID, Count: r.count,
		Alarm: rec.Detail[detailAlarm] != "", Approval: rec.Approval,
	}
	switch {
	case rec.Kind == audit.KindNetwork:
		out.What = whatName
	case rec.Kind == audit.KindCommand:
		out.What = whatCommand
	case rec.Detail[detailWhat] != "":
		out.What = rec.Detail[detailWhat]
	}
	if parents := rec.Detail[detailWantedBy]; parents != "" {
		out.Reason = withParents(out.Reason, parents)
	}
	if rec.Outcome == audit.Pending {
		out.Reason += waitsAs(rec.Approval)
	}
	return out
}
