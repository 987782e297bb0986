package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// approving is a controller with a real queue and a sandbox, sb1, whose policy has a person
// asked about calls of refund.
type approving struct {
	*askingHouse
	made []string
}

func newApproving(t *testing.T, onHold string, limits Limits, calls CallLimits, more string) *approving {
	t.Helper()
	h := &approving{askingHouse: &askingHouse{log: &approvaltest.Log{}, holder: newHolder()}}
	var err error
	h.queue, err = approval.Open(context.Background(), approval.Config{Store: approvaltest.NewMemory(), Log: h.log})
	must(t, err)
	t.Cleanup(h.queue.Close)
	schema, err := tool.ParseSchema("")
	must(t, err)
	run := runner(func(_ context.Context, call tool.Call) ([]byte, error) {
		h.made = append(h.made, call.Tool+" "+call.Arguments)
		return []byte("done"), nil
	})
	set, err := tool.NewSet([]tool.Tool{{Name: "refund", Description: "pays back", Schema: schema, Runner: run}, {Name: "free", Schema: schema, Runner: run}})
	must(t, err)
	h.Controller = New(Config{Log: h.log, Limits: limits, Calls: calls, Tools: set, Approvals: h.queue, Holder: h.holder})
	h.register(t, "sb1", "fail", func(r *Run) {
		r.Policy = parse(t, `
packages: { on_hold: `+onHold+` }
tool_allowlist: [refund, free]
defaults: { action: allow`+more+` }
rules:
  - { name: large, action: deny, priority: 2, condition: { field: arguments.cents, operator: gt, value: 1000 } }
  - { name: refunds, action: approve, message: "money leaves", condition: { field: tool, operator: eq, value: refund } }
`)
	})
	return h
}

func (h *approving) call(t *testing.T, arguments string) door.ToolAnswer {
	t.Helper()
	a, err := h.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "refund", Arguments: arguments})
	must(t, err)
	return a
}

// begin calls in the background.
func (h *approving) begin(ctx context.Context, arguments string) <-chan door.ToolAnswer {
	answers := make(chan door.ToolAnswer, 1)
	go func() {
		a, err := h.CallTool(ctx, door.ToolAsk{Sandbox: "sb1", Tool: "refund", Arguments: arguments})
		if err != nil {
			a.Reason = "error: " + err.Error()
		}
		answers <- a
	}()
	return answers
}

// TestACallThatWaits: it is not made, and a person sees what the tool would get; what was
// approved is made, in whatever spelling, and other arguments ask again.
func TestACallThatWaits(t *testing.T) {
	h := newApproving(t, "fail", Limits{}, CallLimits{}, "")
	first, again := h.call(t, `{"order":"7","cents":5}`), h.call(t, `{ "cents":5, "\u006frder":"7" }`)
	requests := h.pending(t)
	if len(requests) != 1 || len(h.made) > 0 {
		t.Fatalf("%+v, made %v", requests, h.made)
	}
	r := requests[0]
	if r.Call.Arguments != `{"cents":5,"order":"7"}` || r.Call.Tool != "refund" || r.Evidence.Call.Description != "pays back" || r.Asks[0].Sandbox != "sb1" || r.Rule != "rules.refunds" {
		t.Errorf("%+v", r)
	}
	if first.Outcome != door.ToolHeld || first.Approval != r.ID || again.Approval != r.ID || again.RequestID != first.RequestID || first.Reason != "rule refunds has a person asked first: money leaves" {
		t.Errorf("%+v\n%+v", first, again)
	}
	if why := h.why(t); why != "pending_approval refund: rule refunds has a person asked first: money leaves; it waits as "+r.ID+", on the host: cofferdam approvals approve "+r.ID {
		t.Error(why)
	}
	sum, err := h.Summary(t.Context(), "run-sb1")
	if err != nil || len(sum.Tools) != 1 || sum.Tools[0].Refused != 1 || !strings.Contains(sum.Tools[0].Reason, "approve --scope policy "+r.ID) {
		t.Errorf("%+v %v", sum.Tools, err)
	}
	if a := h.call(t, `{"cents":5000}`); a.Outcome != door.ToolRefused || a.Approval != "" {
		t.Errorf("what a rule denies: %+v", a)
	}
	if a, err := h.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "free"}); err != nil || a.Outcome != door.ToolAnswered {
		t.Errorf("the control: %+v %v", a, err)
	}

	h.answer(t, approval.Approved, approval.ScopeRun, r.ID)
	for _, arguments := range []string{`{"order":"7","cents":5}`, `{"cents":5,"order":"7"}`} {
		if a := h.call(t, arguments); a.Outcome != door.ToolAnswered {
			t.Errorf("%+v", a)
		}
	}
	for _, arguments := range []string{`{"order":"7","cents":6}`, `{"order":"7","cents":5.0}`, `{"order":"7"}`} {
		if a := h.call(t, arguments); a.Outcome != door.ToolHeld || a.Approval == r.ID {
			t.Errorf("%s: %+v", arguments, a)
		}
	}
	if diff := cmp.Diff([]string{"free {}", `refund {"cents":5,"order":"7"}`, `refund {"cents":5,"order":"7"}`}, h.made); diff != "" {
		t.Error(diff)
	}
	if why := h.why(t); strings.Contains(why, r.ID) {
		t.Errorf("what was approved is shown as waiting: %s", why)
	}
	for _, rec := range h.log.All() {
		if rec.Kind == audit.KindTool && rec.Outcome == audit.Started && rec.Detail["tool"] == "refund" && rec.Approval != r.ID {
			t.Errorf("a call without the request that let it be made: %+v", rec)
		}
	}

	// After a restart it is known what waited, and what was answered.
	next := New(Config{Log: h.log, Approvals: h.queue})
	run := Run{Sandbox: "sb1", Run: "run-sb1", Policy: parse(t, "tool_allowlist: [refund]\n")}
	must(t, next.Restore(t.Context(), run))
	told, err := next.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(told) != 4 {
		t.Errorf("%+v %v", told, err)
	}
}

// TestACallThatIsDenied: at once, with the person's reason, which why repeats, for each
// arguments their own.
func TestACallThatIsDenied(t *testing.T) {
	h := newApproving(t, "freeze", Limits{}, CallLimits{}, "")
	for i := range 2 {
		arguments := fmt.Sprintf(`{"order":"%d"}`, i)
		ctx, cancel := context.WithCancel(t.Context())
		asked := h.begin(ctx, arguments)
		<-h.holder.signal
		id := h.pending(t)[0].ID
		h.answer(t, approval.Denied, "", id)
		want := "this call of refund was denied by bob (" + id + "): because"
		for _, a := range []door.ToolAnswer{<-asked, h.call(t, arguments)} {
			if a.Outcome != door.ToolRefused || a.Reason != want || a.Approval != id || a.RequestID == "" {
				t.Errorf("%+v", a)
			}
		}
		if why := h.why(t); !strings.Contains(why, "blocked refund: "+want) || strings.Contains(why, "pending") {
			t.Error(why)
		}
		cancel()
	}
	if len(h.made) > 0 || len(h.pending(t)) > 0 {
		t.Errorf("%v", h.made)
	}
}

// TestOneApprovalIsOneCall: of calls that wait together one is made; the others ask again.
func TestOneApprovalIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newApproving(t, "wait 1h", Limits{}, CallLimits{}, "")
		ctx, cancel := context.WithCancel(t.Context())
		all := make([]<-chan door.ToolAnswer, 3)
		for i := range all {
			all[i] = h.begin(ctx, `{}`)
		}
		synctest.Wait()
		for i := range all {
			requests := h.pending(t)
			if len(requests) != 1 || len(h.made) != i {
				t.Fatalf("%d: %+v, made %v", i, requests, h.made)
			}
			h.answer(t, approval.Approved, "", requests[0].ID)
			synctest.Wait()
		}
		if len(h.made) != 3 || len(h.pending(t)) > 0 {
			t.Errorf("made %v", h.made)
		}
		for _, answers := range all {
			if a := <-answers; a.Outcome != door.ToolAnswered {
				t.Errorf("%+v", a)
			}
		}
		cancel()
	})
}

// TestNobodyAnswersACall: within its time it is refused with its request; and what the run
// may not call, or nobody would read, is no question.
func TestNobodyAnswersACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newApproving(t, "wait 10m", Limits{}, CallLimits{}, ", max_tool_calls: 1")
		a := h.call(t, `{}`)
		if a.Outcome != door.ToolHeld || !strings.HasSuffix(a.Reason, "; nobody answered within 10m0s") || len(h.made) > 0 {
			t.Errorf("%+v", a)
		}
		if a := h.call(t, `{"a":"`+strings.Repeat("x", approval.MaxCallArguments)+`"}`); a.Outcome != door.ToolRefused || !strings.Contains(a.Reason, "a person is shown 16384 at most") {
			t.Errorf("%+v", a)
		}
		h.answer(t, approval.Approved, approval.ScopeEverywhere, a.Approval)
		if a := h.call(t, `{}`); a.Outcome != door.ToolAnswered {
			t.Errorf("%+v", a)
		}
		if a := h.call(t, `{"other":1}`); a.Outcome != door.ToolRefused || !strings.Contains(a.Reason, "max_tool_calls") {
			t.Errorf("%+v", a)
		}
		if len(h.pending(t)) > 0 {
			t.Error("somebody is asked about a call that can't be made")
		}
	})
	alone := New(Config{Log: &approvaltest.Log{}, Tools: mustSet(t)})
	must(t, alone.Register(Run{Sandbox: "sb1", Run: "r", Policy: parse(t, "tool_allowlist: [free]\nrules: [{ name: r, action: approve, condition: { field: tool, operator: eq, value: free } }]\n")}))
	if a, err := alone.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "free"}); err != nil || a.Outcome != door.ToolRefused || !strings.Contains(a.Reason, "nobody can be asked here") {
		t.Errorf("without a queue: %+v %v", a, err)
	}
}

func mustSet(t *testing.T) *tool.Set {
	t.Helper()
	schema, err := tool.ParseSchema("")
	must(t, err)
	set, err := tool.NewSet([]tool.Tool{{Name: "free", Schema: schema, Runner: runner(func(context.Context, tool.Call) ([]byte, error) { return nil, errors.New("called") })}})
	must(t, err)
	return set
}

// TestWhoWaitsTakesNoPlace: calls that wait keep no other from being made, are bounded, and
// end with their sandbox or with who gave them up.
func TestWhoWaitsTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newApproving(t, "freeze", Limits{Waiting: 3}, CallLimits{Running: 1, All: 1}, "")
		ctx, cancel := context.WithCancel(t.Context())
		given := h.begin(ctx, `{"n":0}`)
		synctest.Wait()
		kept := []<-chan door.ToolAnswer{}
		for i := range 2 {
			kept = append(kept, h.begin(t.Context(), fmt.Sprintf(`{"n":%d}`, i+1)))
			synctest.Wait()
		}
		if a := h.call(t, `{"n":3}`); a.Outcome != door.ToolHeld || !strings.Contains(a.Reason, "is not kept waiting") {
			t.Errorf("%+v", a)
		}
		if a, err := h.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "free"}); err != nil || a.Outcome != door.ToolAnswered {
			t.Errorf("another call: %+v %v", a, err)
		}
		cancel()
		if a := <-given; !strings.HasPrefix(a.Reason, "error: ") {
			t.Errorf("given up: %+v", a)
		}
		must(t, h.SandboxEnded(t.Context(), "sb1", "done"))
		for _, answers := range kept {
			if a := <-answers; !strings.HasPrefix(a.Reason, "error: ") {
				t.Errorf("of a sandbox that has ended: %+v", a)
			}
		}
		if len(h.made) != 1 {
			t.Errorf("made %v", h.made)
		}
		h.holder.mu.Lock()
		defer h.holder.mu.Unlock()
		if len(h.holder.held) > 0 {
			t.Errorf("held on: %+v", h.holder.held)
		}
	})
}
