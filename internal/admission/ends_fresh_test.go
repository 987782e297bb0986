package admission

import (
	"errors"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
)

// TestACallsEndOutlivesAnAppendThatFailed: a call whose end the log did not take has it when the log takes
// records again: at the latest as its sandbox ends.
func TestACallsEndOutlivesAnAppendThatFailed(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, nil)
	must(t, b.SandboxStarted(t.Context(), "sb1"))
	if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolAnswered {
		t.Fatalf("INCONCLUSIVE: %+v", a)
	}
	b.log.FailWhen(func(r audit.Record) error {
		if r.Kind == audit.KindTool && r.Outcome == audit.Finished {
			return io.ErrShortWrite
		}
		return nil
	})
	if _, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "order", Arguments: `{"id":"7"}`}); !errors.Is(err, io.ErrShortWrite) {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	b.log.FailWhen(nil)
	if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolAnswered {
		t.Fatalf("INCONCLUSIVE: %+v", a)
	}
	must(t, b.SandboxEnded(t.Context(), "sb1", "stopped"))
	ended := map[string]bool{}
	for _, r := range b.log.All() {
		if r.Kind == audit.KindTool && r.Outcome == audit.Finished {
			ended[r.Detail["began_seq"]] = true
		}
	}
	if len(b.made) != 3 || len(ended) != 3 {
		t.Errorf("%d calls were made, %d have an end on record when their sandbox has", len(b.made), len(ended))
	}
}

// TestAConnectionsEndOutlivesItsSandbox: a connection whose end the log did not take as its sandbox ended
// has the bytes that the gateway reports afterwards.
func TestAConnectionsEndOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	c, log := hosted(t, nil)
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	connect := func() uint64 {
		a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14"))
		if err != nil || !a.Decision.Allowed() {
			t.Fatalf("INCONCLUSIVE: %+v %v", a, err)
		}
		return a.Seq
	}
	end := func(seq uint64) error {
		return c.Disconnected(t.Context(), door.Disconnection{Sandbox: "sb1", Seq: seq, Address: "93.184.215.14:443", BytesOut: 10, BytesIn: 20})
	}
	must(t, end(connect())) // the control: the bytes are on record
	second := connect()
	log.FailWhen(func(r audit.Record) error {
		if r.Kind == audit.KindNetwork && r.Outcome == audit.Finished {
			return io.ErrShortWrite
		}
		return nil
	})
	if err := end(second); !errors.Is(err, io.ErrShortWrite) {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	if err := c.SandboxEnded(t.Context(), "sb1", "stopped"); !errors.Is(err, io.ErrShortWrite) {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	c.Unregister("sb1") // as sandbox.remove does, whatever SandboxEnded said
	log.FailWhen(nil)
	told := end(second) // the gateway tells it again, as egress.reports does
	must(t, c.SandboxLost(t.Context(), "sb1", "stopped"))
	with := 0
	for _, r := range log.All() {
		if r.Kind == audit.KindNetwork && r.Outcome == audit.Finished && r.Detail["bytes_out"] == "10" && r.Detail["bytes_in"] == "20" {
			with++
		}
	}
	if with != 2 {
		t.Errorf("two connections took 10 and 20 bytes each, %d of their ends say so; the gateway was told: %v", with, told)
	}
}

// TestARefusalOutlivesAnAppendThatFailed: a refusal that the gateway told a guest, and whose record the log did
// not take, is counted when the log takes records again.
func TestARefusalOutlivesAnAppendThatFailed(t *testing.T) {
	t.Parallel()
	c, log := hosted(t, nil)
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	refusal := door.HostRefusal{Sandbox: "sb1", Name: "api.example", Port: 443, Rule: door.RuleHostTLS, Reason: "another name"}
	for i, fails := range []bool{false, true, false, true} {
		if fails {
			log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
		}
		if i == 3 {
			refusal.Name = "other.example" // the first of its kind
		}
		if _, err := c.HostRefused(t.Context(), refusal); i == 3 && !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("INCONCLUSIVE: %v", err)
		}
		log.FailWhen(nil)
	}
	must(t, c.SandboxEnded(t.Context(), "sb1", "stopped"))
	counted := map[string]int{}
	for _, r := range log.All() {
		if r.Outcome == audit.Blocked {
			counted[r.Detail["name"]] += max(1, r.Count)
		}
	}
	if counted["api.example"] != 3 || counted["other.example"] != 1 {
		t.Errorf("three refusals of one name and one of another were told: %v are on record", counted)
	}
}
