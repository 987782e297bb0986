package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestCallsOfOneOwner: calls of a tool that hangs, of many sandboxes of one token, leave other owners
// theirs: a token, and a sandbox of the host's.
func TestCallsOfOneOwner(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{Running: 2, All: 8, PerSecond: 100_000}, nil, nil)
	register := func(sandbox, token string) {
		r := b.run(t)
		r.Sandbox, r.Run, r.Token = sandbox, "run-"+sandbox, token
		must(t, b.Register(r))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const sandboxes = 20
	outcomes := make(chan door.ToolOutcome, 2*sandboxes)
	for i := range sandboxes {
		id := fmt.Sprint("bad", i)
		register(id, "bad")
		for range 2 {
			go func() {
				a, _ := b.CallTool(ctx, door.ToolAsk{Sandbox: id, Tool: "hang"})
				outcomes <- a.Outcome
			}()
		}
	}
	const held = 6 // three quarters
	for range held {
		<-b.begun
	}
	for range cap(outcomes) - held {
		if got := <-outcomes; got != door.ToolBusy {
			t.Errorf("one too many: %s", got)
		}
	}
	for sandbox, token := range map[string]string{"good": "good", "host1": "", "host2": ""} {
		register(sandbox, token)
		a, err := b.CallTool(ctx, door.ToolAsk{Sandbox: sandbox, Tool: "order", Arguments: `{"id":"7"}`})
		if err != nil || a.Outcome != door.ToolAnswered {
			t.Errorf("%s: %+v %v", sandbox, a, err)
		}
	}
	cancel()
	for range held {
		<-outcomes
	}
	if n := b.queue.running.Held(); n != 0 {
		t.Errorf("%d places are held", n)
	}
}

// TestHoldsOfOneOwner: what many sandboxes of one token keep waiting for a person leaves another
// owner's a place.
func TestHoldsOfOneOwner(t *testing.T) {
	h := newWaitingHouse(t, "freeze", Limits{AllWaiting: 4})
	register := func(sandbox, token string) {
		r := h.run()
		r.Sandbox, r.Run, r.Token = sandbox, "run-"+sandbox, token
		must(t, h.Register(r))
	}
	ask := func(sandbox string) door.AwaitAsk {
		a := awaiting("rich", "13.7.1")
		a.Sandbox = sandbox
		return a
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []<-chan begun
	for i := range 3 {
		register(fmt.Sprint("bad", i), "bad")
		all = append(all, h.begin(ctx, ask(fmt.Sprint("bad", i))))
		<-h.holder.signal
	}
	register("bad4", "bad")
	a, err := h.Await(ctx, ask("bad4"))
	must(t, err)
	if a.Decision.Effect != policy.Hold || !strings.HasSuffix(a.Decision.Reason, "wait already that this one is not kept waiting") {
		t.Errorf("one too many: %+v", a)
	}
	register("good", "good")
	good := h.begin(ctx, ask("good"))
	<-h.holder.signal
	for _, r := range h.queue.list() {
		h.queue.answer(t, r.ID, approval.Approved)
	}
	if got := <-good; got.err != nil || !got.answer.Decision.Allowed() {
		t.Errorf("another owner's: %+v", got)
	}
	for _, one := range all {
		<-one
	}
	if n := h.holds.kept.Held(); n != 0 {
		t.Errorf("%d places are held", n)
	}
}
