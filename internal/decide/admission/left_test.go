package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// impatient is a queue that tells nothing to those who have gone, as a database does.
type impatient struct{ Approvals }

func (q impatient) Ask(ctx context.Context, ask approval.Ask) (approval.Request, error) {
	if err := ctx.Err(); err != nil {
		return approval.Request{}, err
	}
	return q.Approvals.Ask(ctx, ask)
}

func (q impatient) Grants(ctx context.Context, project pkgref.Ref, who approval.Asker) ([]policy.Approval, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	return q.Approvals.Grants(ctx, project, who)
}

// goOnceHeld has whoever stays go once it is kept waiting.
func goOnceHeld(stays context.Context, h *holder, leave func()) {
	go func() {
		select {
		case <-h.signal:
			leave()
		case <-stays.Done():
		}
	}()
}

// TestWhoGoesWhileItIsJudged is on record as one who stays is, whatever is asked for that may wait for a person or
// a tool: that it waits, and why it is refused. An answer that may be had is not, and nobody is kept for it. The control stays.
func TestWhoGoesWhileItIsJudged(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	call := func(name, arguments string) func(*testing.T, context.Context) ([]audit.Record, error) {
		return func(t *testing.T, ctx context.Context) ([]audit.Record, error) {
			t.Helper()
			h := newApproving(t, "freeze", Limits{}, CallLimits{}, "")
			h.config.Approvals = impatient{h.queue}
			stays, leave := context.WithCancel(ctx)
			defer leave()
			if name == "refund" { // one who stays is kept, until it goes
				goOnceHeld(stays, h.holder, leave)
			}
			_, err := h.CallTool(stays, door.ToolAsk{Sandbox: "sb1", Tool: name, Arguments: arguments})
			if ctx.Err() != nil && len(h.made) > 0 {
				t.Errorf("%v is called for nobody", h.made)
			}
			return h.log.All(), err
		}
	}
	asking := func(change func(*Run), ask func(context.Context, *askingHouse) error) func(*testing.T, context.Context) ([]audit.Record, error) {
		return func(t *testing.T, ctx context.Context) ([]audit.Record, error) {
			t.Helper()
			h := newAskingHouse(t, "freeze", Limits{}, change)
			h.config.Approvals = impatient{h.queue}
			stays, leave := context.WithCancel(ctx)
			defer leave()
			goOnceHeld(stays, h.holder, leave)
			err := ask(stays, h)
			return h.log.All(), err
		}
	}
	for name, c := range map[string]struct {
		ask         func(*testing.T, context.Context) ([]audit.Record, error)
		stays, goes audit.Outcome // of the last record
		rule        string        // of who goes
	}{
		"a call that waits":   {call("refund", `{"cents":5}`), audit.Pending, audit.Pending, "rules.refunds"},
		"a call that may not": {call("free", `{"cents":5000}`), audit.Blocked, audit.Blocked, "rules.large"},
		"a call that may":     {call("free", `{"cents":5}`), audit.Finished, audit.Blocked, door.RuleToolLeft},
		"a host": {asking(nil, func(ctx context.Context, h *askingHouse) error {
			_, err := h.AwaitHost(ctx, hostAsk("new.example"))
			return err
		}), audit.Pending, audit.Pending, "network_unlisted"},
		"a push": {asking(underGit(t, "freeze"), func(ctx context.Context, h *askingHouse) error {
			_, err := h.AwaitPush(ctx, pushTo("acme/app", moving("b")))
			return err
		}), audit.Pending, audit.Pending, door.RuleGit},
		"a package": {func(t *testing.T, ctx context.Context) ([]audit.Record, error) {
			t.Helper()
			h := newWaitingHouse(t, "freeze", Limits{})
			h.config.Approvals = impatient{h.queue}
			stays, leave := context.WithCancel(ctx)
			defer leave()
			goOnceHeld(stays, h.holder, leave)
			_, err := h.Await(stays, awaiting("rich", "13.7.1"))
			return h.records(t, audit.Pending, audit.Blocked), err
		}, audit.Pending, audit.Pending, "packages.default"},
	} {
		for stays, ctx := range map[bool]context.Context{true: t.Context(), false: gone} {
			t.Run(name, func(t *testing.T) {
				all, err := c.ask(t, ctx)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				var last audit.Record
				for _, r := range all {
					if r.Kind != audit.KindApproval {
						last = r
					}
				}
				want := c.goes
				if stays {
					want = c.stays
				}
				if last.Outcome != want || !stays && last.Rule != c.rule {
					t.Errorf("stays %t: %d records, and the last is %s by %s: %s", stays, len(all), last.Outcome, last.Rule, last.Reason)
				}
			})
		}
	}
}
