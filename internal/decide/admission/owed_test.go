package admission

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
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
	c.Unregister("sb1") // as sandbox.removeSandbox does, whatever SandboxEnded said
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

// TestEveryRecordThatFailsOnce: whichever record the log does not take once, each thing that began has an
// end on record, once, each refusal that was told is counted, and the sandbox has its end. The control is
// a log that takes all.
func TestEveryRecordThatFailsOnce(t *testing.T) {
	t.Parallel()
	whole := livedThrough(t, -1)
	if len(whole.log.All()) < 16 || whole.began < 6 || whole.refusals < 6 {
		t.Fatalf("INCONCLUSIVE: %d records, %d begins, %d refusals", len(whole.log.All()), whole.began, whole.refusals)
	}
	for failing := range len(whole.log.All()) {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			t.Parallel()
			one := livedThrough(t, failing)
			if one.refusals != whole.refusals && failing > 0 {
				t.Errorf("%d refusals of %d are on record", one.refusals, whole.refusals)
			}
			if one.failed == nil {
				t.Fatal("INCONCLUSIVE: no record failed")
			}
			if t.Failed() {
				t.Logf("the record that failed: %+v", one.failed)
			}
		})
	}
}

// lived is what is on record of a sandbox.
type lived struct {
	log             *approvaltest.Log
	failed          *audit.Record // that the log did not take
	began, refusals int
}

// livedThrough has a sandbox do one of each, and end. The log does not take its failing-th record; -1: it
// takes all.
func livedThrough(t *testing.T, failing int) lived {
	t.Helper()
	of := lived{log: &approvaltest.Log{}}
	b := tooled(t, CallLimits{}, of.log, func(r *Run) {
		r.Policy = parse(t, benchPolicy+"network_allowlist:\n  - { host: api.example, methods: [GET], paths: [/good] }\n  - { host: open.example }\n")
	})
	count := 0
	of.log.FailWhen(func(r audit.Record) error {
		if count++; count-1 == failing {
			of.failed = &r
			return io.ErrShortWrite
		}
		return nil
	})
	if b.SandboxStarted(t.Context(), "sb1") != nil {
		return of // it does not begin
	}
	lead(t, b)
	_ = b.SandboxEnded(t.Context(), "sb1", "stopped")
	b.Unregister("sb1")
	b.WriteOverdue(t.Context()) // as the daemon does every minute
	of.judge(t)
	return of
}

// lead does one of each that begins and ends, or is refused. Nothing goes on whose begin is an error.
func lead(t *testing.T, b *bench) {
	t.Helper()
	for _, name := range []string{"order", "broken", "never"} {
		_, _ = b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: name, Arguments: `{"id":"7"}`})
	}
	for _, how := range []door.Disconnection{{BytesOut: 5}, {Unreached: true, Problem: "it does not answer"}} {
		a, err := b.Connect(t.Context(), connectTo("open.example", 443, "93.184.215.14"))
		if err != nil {
			continue
		}
		done := door.RequestsDone{Sandbox: "sb1", Connection: a.Seq, Requests: []door.RequestDone{{Number: 1, Method: "GET", Path: "/a", Status: 200}}}
		for range 2 { // as the gateway does until it is taken
			if b.Requested(t.Context(), done) == nil {
				break
			}
		}
		how.Sandbox, how.Seq = "sb1", a.Seq
		for range 2 {
			if b.Disconnected(t.Context(), how) == nil {
				break
			}
		}
	}
	_, _ = b.Connect(t.Context(), connectTo("open.example", 443, "93.184.215.14")) // ends with the sandbox
	for _, version := range []string{"2.31.0", "2.32.0"} {
		a, err := b.Serve(t.Context(), serving("requests", version))
		if err == nil && version == "2.31.0" {
			_ = b.Aborted(t.Context(), "sb1", a.Seq, 3)
		}
	}
	for range 2 {
		_, _ = b.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb1", Name: "open.example", Port: 443, Rule: door.RuleHostMemory, Reason: "no room"})
		_, _ = b.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "evil.example"})
		_, _ = b.Request(t.Context(), door.RequestAsk{Sandbox: "sb1", Name: "api.example", Port: 443, Method: "DELETE", Path: "/admin"})
		_, _ = b.Failed(t.Context(), door.Failure{Sandbox: "sb1", ResolvedBy: policy.ByCanonical, Reason: "a name"})
	}
	_ = b.RecordBuild(t.Context(), "sb1", Build{Stage: BuildFailed, ID: "b1", Text: "no memory"})
	_ = b.RecordBuild(t.Context(), "", Build{Stage: BuildFailed, ID: "b2", Text: "no memory"})
}

// judge counts what is on record, and compares begins with ends.
func (l *lived) judge(t *testing.T) {
	t.Helper()
	begins, ends, builds := map[string]int{}, map[string]int{}, 0
	for _, r := range l.log.All() {
		number := fmt.Sprint(r.Seq)
		switch {
		case r.Kind == audit.KindBuild && r.Outcome == audit.Failed:
			builds++
		case r.Kind == audit.KindSandbox && r.Outcome == audit.Started:
			begins["sandbox"]++
		case r.Kind == audit.KindSandbox && r.Outcome == audit.Finished:
			ends["sandbox"]++
		case r.Outcome == audit.Started, r.Outcome == audit.Served:
			begins[number]++
		case r.Outcome == audit.Aborted:
			ends[r.Detail[records.DetailServed]]++
		case r.Kind == audit.KindNetwork && r.Outcome == audit.Finished && r.Detail[records.DetailRequest] != "":
			ends["request of "+r.Detail[records.DetailBegan]]++
		case r.Detail[records.DetailBegan] != "" && (r.Outcome == audit.Finished || r.Outcome == audit.Failed):
			ends[r.Detail[records.DetailBegan]]++
		case r.Outcome == audit.Blocked, r.Outcome == audit.Failed && r.Detail[records.DetailName] != "open.example":
			l.refusals += max(1, r.Count)
		}
	}
	for what := range begins {
		if ends[what] != 1 {
			t.Errorf("%s has %d ends", what, ends[what])
		}
	}
	if builds != 2 {
		t.Errorf("%d failed builds of 2 are on record", builds)
	}
	l.began = len(begins)
}
