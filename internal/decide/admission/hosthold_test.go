package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// askingHouse is a controller with a real queue and a sandbox, sb1, whose policy leaves
// unlisted names to people.
type askingHouse struct {
	*Controller
	log    *approvaltest.Log
	queue  *approval.Queue
	holder *holder
}

func newAskingHouse(t *testing.T, onHold string, limits Limits, change func(*Run)) *askingHouse {
	t.Helper()
	h := &askingHouse{log: &approvaltest.Log{}, holder: newHolder()}
	var err error
	h.queue, err = approval.Open(context.Background(), approval.Config{Store: approvaltest.NewMemory(), Log: h.log})
	must(t, err)
	t.Cleanup(h.queue.Close)
	h.Controller = New(Config{Log: h.log, Limits: limits, Approvals: h.queue, Holder: h.holder})
	h.register(t, "sb1", onHold, change)
	return h
}

func (h *askingHouse) register(t *testing.T, sandbox, onHold string, change func(*Run)) {
	t.Helper()
	run := Run{Sandbox: sandbox, Run: "run-" + sandbox, Task: "a task", User: "ann"}
	run.Policy = parse(t, "packages: { on_hold: "+onHold+" }\nnetwork_unlisted: hold\nnetwork_allowlist: [ api.example, \"*.cdn.example\" ]\nname: "+sandbox+"\n")
	if change != nil {
		change(&run)
	}
	must(t, h.Register(run))
}

func hostAsk(name string) door.HostAsk {
	return door.HostAsk{Sandbox: "sb1", Name: name, Port: 443, Protocol: door.ProtocolTLS}
}

func (h *askingHouse) pending(t *testing.T) []approval.Request {
	t.Helper()
	requests, _, err := h.queue.List(t.Context(), approval.Filter{States: []approval.State{approval.Pending}})
	must(t, err)
	return requests
}

func (h *askingHouse) answer(t *testing.T, state approval.State, scope approval.Scope, ids ...string) {
	t.Helper()
	_, err := approvaltest.AnswerShown(t.Context(), h.queue, "bob", approval.Verdict{IDs: ids, State: state, Scope: scope, Reason: "because"})
	must(t, err)
}

// await asks for a host, and must be answered without an error.
func (h *askingHouse) await(t *testing.T, ask door.HostAsk) door.Answer {
	t.Helper()
	a, err := h.AwaitHost(t.Context(), ask)
	must(t, err)
	return a
}

func (h *askingHouse) why(t *testing.T) string {
	t.Helper()
	refusals, err := h.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	var lines []string
	for _, r := range refusals {
		lines = append(lines, r.Outcome+" "+r.Name+": "+r.Reason)
	}
	return strings.Join(lines, "\n")
}

// TestAHostThatWaits: to ask what a name is asks nobody; to connect does, once. An approval is
// for that run, that name and that port.
func TestAHostThatWaits(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, nil)
	h.register(t, "sb2", "fail", nil)
	ctx := t.Context()
	for _, port := range []int{0, 443} {
		a, err := h.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "new.example", Port: port})
		if err != nil || a.Answer.Decision.Effect != policy.Hold || fmt.Sprint(a.Ports) != "[80 443]" {
			t.Errorf("port %d: %+v %v", port, a, err)
		}
	}
	if len(h.pending(t)) > 0 || len(texts(h.log)) > 0 {
		t.Errorf("a question alone is on record: %v, %v", h.pending(t), texts(h.log))
	}
	if a, err := h.Connect(ctx, connectTo("new.example", 443, "93.184.215.14")); err != nil || a.Decision.Allowed() {
		t.Errorf("a connection that nobody approved: %+v %v", a, err)
	}
	first, again := h.await(t, hostAsk("new.example")), h.await(t, hostAsk("new.example"))
	requests := h.pending(t)
	if len(requests) != 1 || requests[0].Host != (approval.Host{Name: "new.example", Port: 443}) || requests[0].Asks[0].Task != "a task" {
		t.Fatalf("%+v", requests)
	}
	id := requests[0].ID
	if first.Decision.Effect != policy.Hold || first.Approval != id || again.Approval != id || again.RequestID != first.RequestID {
		t.Errorf("%+v\n%+v", first, again)
	}
	if why := h.why(t); !strings.Contains(why, "pending_approval new.example:443: new.example is not on the policy's network_allowlist and waits for approval; network_unlisted is hold; it waits as "+id) {
		t.Error(why)
	}

	h.answer(t, approval.Approved, approval.ScopeRun, id)
	if a := h.await(t, hostAsk("new.example")); !a.Decision.Allowed() || a.Decision.Approval != id {
		t.Errorf("approved: %+v", a)
	}
	open, err := h.Connect(ctx, connectTo("new.example", 443, "93.184.215.14"))
	if err != nil || !open.Decision.Allowed() {
		t.Fatalf("approved: %+v %v", open, err)
	}
	if why := h.why(t); strings.Contains(why, "pending") {
		t.Errorf("what was approved is shown as waiting: %s", why)
	}
	other := hostAsk("new.example")
	other.Sandbox = "sb2"
	port := hostAsk("new.example")
	port.Port = 80
	for what, ask := range map[string]door.HostAsk{"another run": other, "another port": port, "a name below": hostAsk("a.new.example")} {
		if a := h.await(t, ask); a.Decision.Effect != policy.Hold {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if gone, err := h.Standing(ctx, "sb1", []uint64{open.Seq}); err != nil || len(gone) > 0 {
		t.Errorf("%v %v", gone, err)
	}
	sum, err := h.Summary(ctx, "run-sb1")
	must(t, err)
	i := slices.IndexFunc(sum.Hosts, func(s Host) bool { return s.Name == "new.example" && s.Port == 443 })
	if i < 0 || sum.Hosts[i].Connections != 1 || sum.Hosts[i].Refused != 0 {
		t.Errorf("%+v", sum.Hosts)
	}
	if i = slices.IndexFunc(sum.Hosts, func(s Host) bool { return s.Port == 80 }); i < 0 || sum.Hosts[i].Refused != 1 || !strings.Contains(sum.Hosts[i].Reason, "cofferdam approvals approve --scope policy ap-") {
		t.Errorf("%+v", sum.Hosts)
	}

	_, err = h.queue.Revoke(ctx, "bob", id, "no more")
	must(t, err)
	if gone, err := h.Standing(ctx, "sb1", []uint64{open.Seq}); err != nil || fmt.Sprint(gone) != fmt.Sprint([]uint64{open.Seq}) {
		t.Errorf("an answer was revoked, and its connection goes on: %v %v", gone, err)
	}
}

// TestAHostThatIsDenied: at once, with the person's reason, which why repeats.
func TestAHostThatIsDenied(t *testing.T) {
	h := newAskingHouse(t, "freeze", Limits{}, func(r *Run) { r.Policy = parse(t, "network_unlisted: hold\n") })
	id := h.await(t, hostAsk("new.example")).Approval
	h.answer(t, approval.Denied, approval.ScopeRun, id)
	const want = "new.example was denied by bob ("
	a := h.await(t, hostAsk("new.example"))
	if a.Decision.Effect != policy.Deny || !strings.HasPrefix(a.Decision.Reason, want) || !strings.HasSuffix(a.Decision.Reason, ": because") {
		t.Errorf("%+v", a)
	}
	if why := h.why(t); !strings.Contains(why, "blocked new.example:443: "+want) || strings.Contains(why, "pending") {
		t.Error(why)
	}
	if refusals, err := h.Refusals(t.Context(), "sb1", id, 0); err != nil || len(refusals) != 2 {
		t.Errorf("under the request's id: %+v %v", refusals, err)
	}
	if a, err := h.Connect(t.Context(), connectTo("new.example", 443, "93.184.215.14")); err != nil || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
	if len(h.pending(t)) > 0 {
		t.Error("somebody is asked again")
	}
}

// TestWhatAPersonDoesNotOpen: an approved name leads to public addresses alone, unless the
// operator's configuration has the address.
func TestWhatAPersonDoesNotOpen(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, nil)
	h.answer(t, approval.Approved, approval.ScopeEverywhere, h.await(t, hostAsk("new.example")).Approval)
	for address, want := range map[string]bool{
		"93.184.215.14": true, "2606:2800:21f::1": true, // the control
		"10.0.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "100.64.0.1": false, "fc00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false,
	} {
		a, err := h.Connect(t.Context(), connectTo("new.example", 443, "93.184.215.14", address))
		if err != nil || a.Decision.Allowed() != want || !want && a.Decision.Rule != door.RuleHostAddress {
			t.Errorf("%s: %+v %v", address, a, err)
		}
	}
	pinned := connectTo("new.example", 443, "127.0.0.1")
	pinned.Pinned = true
	for what, ask := range map[string]door.ConnectAsk{"pinned": pinned, "listed": connectTo("api.example", 443, "10.0.0.1")} {
		if a, err := h.Connect(t.Context(), ask); err != nil || !a.Decision.Allowed() {
			t.Errorf("%s: %+v %v", what, a, err)
		}
	}
}

// TestNobodyIsAsked: in a plan, about what the sandbox's client closed, about names that
// no person opens, and where there is no queue.
func TestNobodyIsAsked(t *testing.T) {
	closed, err := policy.NewNarrowing([]string{"api.example"}, []string{policy.Everything}, nil)
	must(t, err)
	for what, c := range map[string]struct {
		change func(*Run)
		name   string
		asks   bool
		reason string
	}{
		"the control":     {nil, "new.example", true, "waits for approval"},
		"a plan":          {func(r *Run) { r.Plan = true }, "new.example", false, "installs are only weighed here"},
		"a rehearsal":     {func(r *Run) { r.Plan, r.Rehearsal = true, true }, "new.example", false, "installs are only weighed here"},
		"its client":      {func(r *Run) { r.Narrowing = closed }, "new.example", false, "the sandbox's own client closed the network"},
		"a local name":    {nil, "metadata.google.internal", false, "is not on the policy's network_allowlist"},
		"an address":      {nil, "10.0.0.1", false, "is not on the policy's network_allowlist"},
		"a narrower text": {func(r *Run) { r.Policy, _ = r.Policy.NarrowedBy(parse(t, "packages: { default: deny }\n")) }, "new.example", false, "reaches package registries and nothing else"},
	} {
		h := newAskingHouse(t, "fail", Limits{}, c.change)
		a := h.await(t, hostAsk(c.name))
		if (a.Decision.Effect == policy.Hold) != c.asks || a.Decision.Allowed() || !strings.Contains(a.Decision.Reason, c.reason) || len(h.pending(t)) > 0 != c.asks {
			t.Errorf("%s: %+v, %v", what, a, h.pending(t))
		}
		if n, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: c.name}); err != nil || (n.Answer.Decision.Effect == policy.Hold) != c.asks || len(n.Ports) > 0 != c.asks {
			t.Errorf("%s: the name: %+v %v", what, n, err)
		}
	}
	c, _ := hosted(t, func(r *Run) { r.Policy = parse(t, "network_unlisted: hold\n") })
	if a, err := c.AwaitHost(t.Context(), hostAsk("new.example")); err != nil || a.Decision.Effect != policy.Deny || !strings.Contains(a.Decision.Reason, "nobody can be asked here") {
		t.Errorf("without a queue: %+v %v", a, err)
	}
}

// TestAFloodOfNames: past a sandbox's share names are refused, on record once, and those
// that it had asked for wait on.
func TestAFloodOfNames(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{Names: 3}, nil)
	for i := range 6 {
		name := fmt.Sprintf("n%d.example", i)
		n, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: name, Look: i%2 == 0})
		must(t, err)
		a := h.await(t, hostAsk(name))
		if held := i < 3; (n.Answer.Decision.Effect == policy.Hold) != held || (a.Decision.Effect == policy.Hold) != held || !held && a.Decision.Rule != ruleNamesQuota {
			t.Errorf("%s: %+v\n%+v", name, n, a)
		}
	}
	if a := h.await(t, hostAsk("n0.example")); a.Decision.Effect != policy.Hold {
		t.Errorf("%+v", a)
	}
	if n, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "api.example"}); err != nil || !n.Answer.Decision.Allowed() {
		t.Errorf("a listed name: %+v %v", n, err)
	}
	over := 0
	for _, r := range h.log.All() {
		if r.Outcome == audit.Exceeded {
			over++
		}
	}
	if len(h.pending(t)) != 3 || over != 1 {
		t.Errorf("%d requests, and %d records of the flood", len(h.pending(t)), over)
	}
}

// begin asks for a host in the background.
func (h *askingHouse) begin(ctx context.Context, ask door.HostAsk) <-chan begun {
	done := make(chan begun, 1)
	go func() {
		a, err := h.AwaitHost(ctx, ask)
		done <- begun{a, err}
	}()
	return done
}

// TestConnectionsWaitTogether: many share one request and its answer; with freeze the
// sandbox is told to.
func TestConnectionsWaitTogether(t *testing.T) {
	for _, mode := range []string{"freeze", "wait 20s"} {
		synctest.Test(t, func(t *testing.T) {
			h := newAskingHouse(t, mode, Limits{}, nil)
			var all []<-chan begun
			for range 5 {
				all = append(all, h.begin(t.Context(), hostAsk("new.example")))
			}
			synctest.Wait()
			requests := h.pending(t)
			if len(requests) != 1 || requests[0].Asked != 1 {
				t.Fatalf("%+v", requests)
			}
			h.holder.mu.Lock()
			if len(h.holder.held) != 5 || h.holder.held[0].Host != "new.example:443" || len(h.holder.frozen) > 0 != (mode == "freeze") {
				t.Errorf("%+v, frozen %d", h.holder.held, len(h.holder.frozen))
			}
			h.holder.mu.Unlock()
			h.answer(t, approval.Approved, approval.ScopeRun, requests[0].ID)
			for _, done := range all {
				if b := <-done; b.err != nil || !b.answer.Decision.Allowed() {
					t.Errorf("%+v %v", b.answer, b.err)
				}
			}
			if h.holder.past != 5 {
				t.Errorf("%d of 5 are released", h.holder.past)
			}
		})
	}
}

// TestPatienceForAHost: it ends as the policy says, or with its client; the request stays.
func TestPatienceForAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAskingHouse(t, "wait 20s", Limits{}, nil)
		began := time.Now()
		a := h.await(t, hostAsk("new.example"))
		if a.Decision.Effect != policy.Hold || !strings.HasSuffix(a.Decision.Reason, "; nobody answered within 20s") || time.Since(began) != 20*time.Second {
			t.Errorf("%+v after %s", a, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := h.begin(ctx, hostAsk("new.example"))
		synctest.Wait()
		cancel()
		if b := <-done; !errors.Is(b.err, context.Canceled) {
			t.Errorf("its client has gone: %+v", b)
		}
		if len(h.pending(t)) != 1 || h.holds.kept.Held() != 0 || h.holder.past != 2 {
			t.Errorf("%v, %d hold on", h.pending(t), h.holds.kept.Held())
		}
		late := h.begin(t.Context(), hostAsk("new.example"))
		synctest.Wait()
		h.answer(t, approval.Denied, approval.ScopeRun, a.Approval)
		if b := <-late; b.err != nil || b.answer.Decision.Effect != policy.Deny {
			t.Errorf("%+v", b)
		}
	})
}

// TestWhatAPersonIsTold: who wants the host, since when, and what its name is near to; and
// what nobody looked at.
func TestWhatAPersonIsTold(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, nil)
	for i, argv := range [][]string{{"sleep", "1"}, {"curl", "https://apl.example"}} {
		_, err := h.Command(t.Context(), "sb1", fmt.Sprint(i), argv)
		must(t, err)
	}
	for name, near := range map[string]string{"apl.example": "api.example: ", "a.cdm.example": "*.cdn.example: ", "other.example": "", "xn--pi-pla.example": ""} {
		h.await(t, hostAsk(name))
		requests := h.pending(t)
		e := requests[0].Evidence
		if requests[0].Host.Name != name || !strings.HasPrefix(e.Similar, near) || (near == "") != (e.Similar == "") {
			t.Errorf("%s: similar to %q", name, e.Similar)
		}
		if e.Host == nil || e.Host.Protocol != "tls" || !slices.Equal(e.Host.Commands, []string{"curl https://apl.example", "sleep 1"}) || e.FirstSeen.IsZero() {
			t.Errorf("%s: %+v", name, e)
		}
		if len(e.Unchecked) != 2 || !strings.HasPrefix(e.Unchecked[0], "addresses: ") || len(e.Findings) > 0 != strings.HasPrefix(name, "xn--") {
			t.Errorf("%s: %q, %q", name, e.Unchecked, e.Findings)
		}
	}
}

// TestAHostAfterARestart: what waited is known of, and counts.
func TestAHostAfterARestart(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{Names: 1}, nil)
	id := h.await(t, hostAsk("new.example")).Approval
	next := New(Config{Log: h.log, Limits: Limits{Names: 1}, Approvals: h.queue})
	must(t, next.Restore(t.Context(), Run{Sandbox: "sb1", Run: "run-sb1", Policy: parse(t, "network_unlisted: hold\n")}))
	refusals, err := next.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(refusals) != 1 || refusals[0].Approval != id {
		t.Errorf("%+v %v", refusals, err)
	}
	for name, want := range map[string]string{"other.example": ruleNamesQuota, "new.example": "network_unlisted"} {
		if a, err := next.AwaitHost(t.Context(), hostAsk(name)); err != nil || a.Decision.Rule != want {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}
