package admission

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Refusals implements Door.
func (c *Controller) Refusals(_ context.Context, sandbox, request string, most int) ([]door.Refusal, error) {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return nil, err
	}
	return t.book.Refusals(request, most, t.served.Last()), nil
}

// Sought says which refusals are meant: of a run, or of one of its sandboxes; with a
// Request only those under that id. Causes has those marked that may be why something
// failed, for which the run's records are read.
type Sought struct {
	Run, Sandbox, Request string
	Causes                bool
}

// RefusalsOf are a run's refusals in the words of Refusals, whether it lives or is long over: of a
// sandbox that lives what is known of it, of another what the log has. Refusals that a copy inherited
// are told as its source's. fault.ErrNotFound if the log has nothing of the run, or nothing was
// refused under the request's id.
func (c *Controller) RefusalsOf(ctx context.Context, s Sought) ([]door.Refusal, error) {
	list, err := soughtRefusals(ctx, c, s)
	if err != nil || !s.Causes || len(list) == 0 {
		return list, err
	}
	of := map[string]*summary{} // a copy tells what it inherited, too, of which its source's records say more
	for i, r := range list {
		sum, read := of[r.Run]
		if !read {
			if sum, err = summarize(ctx, &c.config, r.Run); err != nil && !errors.Is(err, fault.ErrNotFound) {
				return nil, err
			}
			of[r.Run] = sum
		}
		list[i].Cause = sum == nil || sum.causes.isCause(r)
	}
	slices.SortStableFunc(list, func(a, b door.Refusal) int {
		return cmp.Or(records.AlarmFirst(a.Alarm, b.Alarm), records.AlarmFirst(a.Cause, b.Cause))
	})
	return list, nil
}

func soughtRefusals(ctx context.Context, c *Controller, s Sought) ([]door.Refusal, error) {
	if s.Run == "" && s.Sandbox == "" {
		return nil, fault.Invalid("refusals are of a run or of a sandbox; name one")
	}
	if live, err := c.tenants.getTenant(s.Sandbox); err == nil && (s.Run == "" || s.Run == live.run.Run) {
		return refusalsOf([]*tenant{live}, s.Request) // the log, which may be long, says no more of it
	}
	over, order := map[string]*tenant{}, []*tenant{} // in order those that live, too
	for r, err := range c.config.Log.Records(ctx, audit.Filter{Run: s.Run, Sandbox: s.Sandbox}) {
		if err != nil {
			return nil, err
		}
		t, met := over[r.Sandbox] // nil: it lives
		if !met {
			if live, err := c.tenants.getTenant(r.Sandbox); err == nil {
				order = append(order, live)
			} else {
				t = newTenant(Run{Sandbox: r.Sandbox, Run: r.Run}, &c.config, ledger.NewBudget(leastRemembered, leastRemembered), &c.earlier, nil)
				order = append(order, t)
			}
			over[r.Sandbox] = t
		}
		if t != nil {
			t.recall(r)
		}
	}
	if len(order) == 0 {
		return nil, fault.New(fault.ErrNotFound, "there is no run %q on record", redact.Cut(cmp.Or(s.Run, s.Sandbox), 200))
	}
	return refusalsOf(order, s.Request)
}

// refusalsOf are the refusals of these sandboxes, alarms first, then the oldest first; with a
// request only those under that id.
func refusalsOf(tenants []*tenant, request string) ([]door.Refusal, error) {
	list := []door.Refusal{}
	for _, t := range tenants {
		list = append(list, t.book.Refusals(request, 0, t.served.Last())...)
	}
	if request != "" && len(list) == 0 {
		return nil, fault.New(fault.ErrNotFound, "nothing was refused under the id %q", redact.Cut(request, 40))
	}
	slices.SortStableFunc(list, func(a, b door.Refusal) int {
		return cmp.Or(records.AlarmFirst(a.Alarm, b.Alarm), a.Time.Compare(b.Time))
	})
	return list, nil
}

// recall takes one record of a sandbox that is over, as far as it says what was
// refused. Nobody else knows the tenant.
func (t *tenant) recall(r audit.Record) {
	switch r.Kind {
	case audit.KindPackage, audit.KindNetwork:
		defer hostAsker{t}.replayRecord(r, Limits{})
		switch r.Outcome { //nolint:exhaustive // the others refuse nothing
		case audit.Served:
			t.served.Add(r)
			t.book.Served(records.RefOf(r))
		case audit.Blocked, audit.Withheld, audit.Failed, audit.Exceeded, audit.Pending, audit.WouldDeny, audit.WouldHold:
			t.book.ReplayRefusal(r)
		}
	case audit.KindCommand:
		if r.Outcome == audit.Blocked {
			t.book.Blocked(r)
		}
	case audit.KindTool:
		caller{t}.replayRecord(r)
	case audit.KindFinding:
		t.book.ReplayRefusal(r)
	case audit.KindSandbox, audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild, audit.KindFile:
	}
}
