package admission

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Answers about a run are the same while its sandbox lives and when it is over, as
// long as the log knows how often each thing was refused.
func TestWhatARunWasRefusedIsToldAfterItsEnd(t *testing.T) {
	h := newHouse(t, Limits{})
	h.busy(t)
	live, err := h.RefusalsOf(t.Context(), Sought{Run: "run1"})
	must(t, err)
	inside, err := h.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	if diff := cmp.Diff(inside, live); diff != "" || len(live) < 4 {
		t.Fatalf("inside (-) and on the host (+) differ, or are few:\n%s\n%+v", diff, live)
	}
	must(t, h.SandboxEnded(t.Context(), "sb1", "destroyed"))
	h.Unregister("sb1")
	for _, s := range []Sought{{Run: "run1"}, {Sandbox: "sb1"}, {Run: "run1", Sandbox: "sb1"}} {
		over, err := h.RefusalsOf(t.Context(), s)
		must(t, err)
		if diff := cmp.Diff(live, over); diff != "" {
			t.Errorf("%+v: while it lived (-) and after (+):\n%s", s, diff)
		}
	}
	for _, r := range live {
		one, err := h.RefusalsOf(t.Context(), Sought{Run: "run1", Request: r.RequestID})
		must(t, err)
		if diff := cmp.Diff([]door.Refusal{r}, one); diff != "" {
			t.Errorf("%s:\n%s", r.RequestID, diff)
		}
	}
	for _, s := range []Sought{{Run: "other"}, {Sandbox: "sb2"}, {Run: "run1", Sandbox: "sb2"}, {Run: "run1", Request: "nosuch"}} {
		if list, err := h.RefusalsOf(t.Context(), s); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%+v: %v %v", s, list, err)
		}
	}
}

// A client is told the id under which a page withheld something also where it then got
// another release: the id answers though it is no refusal of the run any more.
func TestTheIDOfWhatWasPassedOverAnswers(t *testing.T) {
	h := newHouse(t, Limits{})
	page, err := h.Index(t.Context(), indexOf("numpy", "i1", wheel("numpy", "1.26.4"), wheel("numpy", "2.0.1")))
	must(t, err)
	if _, err := h.Serve(t.Context(), serving("numpy", "1.26.4")); err != nil || page.RequestID == "" {
		t.Fatalf("%+v: %v", page, err)
	}
	for _, over := range []bool{false, true} {
		if over {
			h.Unregister("sb1")
		}
		all, err := h.RefusalsOf(t.Context(), Sought{Run: "run1"})
		must(t, err)
		one, err := h.RefusalsOf(t.Context(), Sought{Run: "run1", Request: page.RequestID})
		must(t, err)
		if len(all) != 0 || len(one) != 1 || one[0].Package.Name != "numpy" || one[0].Run != "run1" || one[0].Sandbox != "sb1" {
			t.Errorf("over %v: %+v %+v", over, all, one)
		}
	}
}

// The refusals of a sandbox that lives are known without the log, which is asked for after each
// command of an agent, and may have millions of records; of one that is over it is read (the control).
func TestTheLogIsNotReadForASandboxThatLives(t *testing.T) {
	h := newHouse(t, Limits{})
	h.busy(t)
	want, err := h.RefusalsOf(t.Context(), Sought{Run: "run1"})
	must(t, err)
	log := &countedReads{Log: h.log}
	h.config.Log = log
	for _, s := range []Sought{{Sandbox: "sb1"}, {Run: "run1", Sandbox: "sb1"}} {
		got, err := h.RefusalsOf(t.Context(), s)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" || log.reads != 0 {
			t.Errorf("%+v: %d reads of the log; by the run (-) and by the sandbox (+):\n%s", s, log.reads, diff)
		}
	}
	if list, err := h.RefusalsOf(t.Context(), Sought{Run: "other", Sandbox: "sb1"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("of another run: %v %v", list, err)
	}
	h.Unregister("sb1")
	log.reads = 0
	if _, err := h.RefusalsOf(t.Context(), Sought{Sandbox: "sb1"}); err != nil || log.reads != 1 {
		t.Errorf("when it is over: %d reads, %v", log.reads, err)
	}
}

type countedReads struct {
	audit.Log

	reads int
}

func (c *countedReads) Records(ctx context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	c.reads++
	return c.Log.Records(ctx, f)
}
