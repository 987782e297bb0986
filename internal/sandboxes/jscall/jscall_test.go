package jscall_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	engines "github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
)

// cacheDir keeps what was compiled for all tests of this package.
var cacheDir string

func TestMain(m *testing.M) {
	var err error
	if cacheDir, err = os.MkdirTemp("", "call-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(cacheDir)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// house is a desk over the real door and the real engine, with two tools.
type house struct {
	*jscall.Desk
	t     *testing.T
	log   *approvaltest.Log
	queue *approval.Queue
	paid  atomic.Int64
}

// runner is a tool.
type runner func(ctx context.Context, call tool.Call) ([]byte, error)

// Definition implements tool.Runner.
func (runner) Definition() string { return "a function of the test" }

func (r runner) Run(ctx context.Context, call tool.Call) ([]byte, error) { return r(ctx, call) }

func open(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, log: &approvaltest.Log{}}
	var err error
	h.queue, err = approval.Open(context.Background(), approval.Config{Store: approvaltest.NewMemory(), Log: h.log})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := tool.ParseSchema(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	if err != nil {
		t.Fatal(err)
	}
	double := runner(func(_ context.Context, c tool.Call) ([]byte, error) { return []byte(c.Arguments), nil })
	pay := runner(func(context.Context, tool.Call) ([]byte, error) { return []byte(fmt.Sprint(h.paid.Add(1))), nil })
	set, err := tool.NewSet([]tool.Tool{
		{Name: "echo", JSON: true, Schema: schema, Runner: double}, {Name: "pay", JSON: true, Schema: schema, Runner: pay}, {Name: "secret", JSON: true, Schema: schema, Runner: pay},
	})
	if err != nil {
		t.Fatal(err)
	}
	door := admission.New(admission.Config{Log: h.log, Tools: set, Approvals: h.queue})
	h.Desk = jscall.New(jscall.Config{Callers: engines.Callers(cacheDir), Default: engines.DefaultCaller, Door: door})
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
		h.queue.Close()
	})
	return h
}

func parse(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const document = `
isolation: wasm
packages: { on_hold: fail }
tool_allowlist: [echo, pay]
defaults: { action: allow, timeout_seconds: 5, max_memory_mb: 32 }
rules:
  - { name: no-eval, action: deny, message: "no eval here", condition: { field: code, operator: contains, value: "eval(" } }
  - { name: few, action: deny, condition: { field: arguments.n, operator: gt, value: 100 } }
  - { name: money, action: approve, message: "money leaves", condition: { field: tool, operator: eq, value: pay } }
`

func (h *house) make(text, code string) (jscall.Done, error) {
	h.t.Helper()
	return h.Make(h.t.Context(), jscall.Request{Run: "run1", Task: "a task", User: "ann", Code: code, Policy: parse(h.t, text)})
}

// came has code run, which must be.
func (h *house) came(text, code string) jscall.Done {
	h.t.Helper()
	done, err := h.make(text, code)
	if err != nil {
		h.t.Fatalf("%s: %v", code, err)
	}
	return done
}

// commands are the records of calls.
func (h *house) commands() (all []audit.Record) {
	for _, r := range h.log.All() {
		if r.Kind == audit.KindCommand {
			all = append(all, r)
		}
	}
	return all
}

// TestOnRecord: a call has two records, the first before the code runs.
func TestOnRecord(t *testing.T) {
	t.Parallel()
	h := open(t)
	done := h.came(document, "callTool('echo', {n: 2}).n + 1")
	if done.Value != "3" || done.Run != "run1" || !strings.HasPrefix(done.ID, "call-") || done.RequestID == "" {
		t.Errorf("%+v", done)
	}
	records := h.log.All()
	if len(records) != 4 {
		t.Fatalf("%d records, want those of the call around those of the tool: %+v", len(records), records)
	}
	began, ended := records[0], records[3]
	if began.Kind != audit.KindCommand || began.Outcome != audit.Started || began.Run != "run1" || began.Sandbox != done.ID || began.User != "ann" ||
		began.RequestID != done.RequestID || began.Detail["isolation"] != "wasm" || began.Detail["language"] != "javascript" ||
		len(began.Detail["code_sha256"]) != 64 || began.Command[1] != "callTool('echo', {n: 2}).n + 1" || began.Policy != parse(t, document).Digest() {
		t.Errorf("it begins with %+v", began)
	}
	if records[1].Kind != audit.KindTool || records[2].Kind != audit.KindTool || records[1].Sandbox != done.ID {
		t.Errorf("the tool is on record as %+v", records[1:3])
	}
	if ended.Kind != audit.KindCommand || ended.Outcome != audit.Finished || *ended.Exit != 0 || ended.RequestID != done.RequestID || ended.Detail["failure"] != "" || ended.Detail["value_bytes"] != "1" {
		t.Errorf("it ends with %+v", ended)
	}
	if h.Has(done.ID) || len(h.Runs()) > 0 {
		t.Error("the call is still under way")
	}
	failed := h.came(document, "throw new Error('no\\u001b[31m')")
	records = h.commands()
	if ended := records[len(records)-1]; failed.Failure == nil || *ended.Exit != 1 || ended.Detail["failure"] != "thrown" || ended.Reason != "Error: no?[31m" || !ended.GuestClaimed {
		t.Errorf("a failed call ends with %+v", ended)
	}
}

// TestRulesJudgeCode: what the policy refuses does not run, and is on record.
func TestRulesJudgeCode(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, err := h.make(document, "callTool('echo'); eval('1')")
	if !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "rule no-eval denies it: no eval here") {
		t.Errorf("%v", err)
	}
	if all := h.log.All(); len(all) != 1 || all[0].Outcome != audit.Blocked || all[0].Rule != "rules.no-eval" {
		t.Errorf("on record is %+v", all)
	}
	if done := h.came(document, "callTool('echo'); 'eval' + '(1)'"); done.Failure != nil { // the same without what the rule looks for
		t.Errorf("%+v", done.Failure)
	}
	if _, err := h.make("defaults: { action: deny }\n", "1"); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a policy that denies all: %v", err)
	}
}

// TestWithoutARecordNothingRuns, and what has ended without one is not told.
func TestWithoutARecordNothingRuns(t *testing.T) {
	t.Parallel()
	h := open(t)
	for outcome, made := range map[audit.Outcome]int64{audit.Started: 0, audit.Finished: 1} {
		h.paid.Store(0)
		h.log.FailWhen(func(r audit.Record) error {
			if r.Kind == audit.KindCommand && r.Outcome == outcome {
				return errors.New("the disk is full")
			}
			return nil
		})
		if done, err := h.make("tool_allowlist: [pay]\n", "callTool('pay')"); !errors.Is(err, fault.ErrUnavailable) || done.Value != "" || h.paid.Load() != made {
			t.Errorf("without %s: %q, %v, %d payments, want %d", outcome, done.Value, err, h.paid.Load(), made)
		}
		h.log.FailWhen(nil)
	}
}

// TestIsolation: a policy that asks for another wall, or the strongest, is not met by a
// call, and a token's policy has to say this one.
func TestIsolation(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, c := range []struct {
		isolation, token string
		allowed          bool
	}{
		{"", "", true},
		{"wasm", "", true},
		{"wasm", "tok1", true},
		{"", "tok1", false},
		{"auto", "", false},
		{"gvisor", "", false},
		{"runc", "tok1", false},
		{"hardware", "", false},
	} {
		text := "packages: { default: deny }\n"
		if c.isolation != "" {
			text += "isolation: " + c.isolation + "\n"
		}
		_, err := h.Make(t.Context(), jscall.Request{Code: "1", Policy: parse(t, text), Token: c.token})
		if c.allowed && err != nil || !c.allowed && (!errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "isolation: wasm")) {
			t.Errorf("isolation %q, token %q: %v", c.isolation, c.token, err)
		}
	}
	if n := len(h.commands()); n != 6 { // two for each call that was made
		t.Errorf("%d records", n)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	h := open(t)
	const hungry = "const all = []; for (;;) all.push(new Array(1000).fill(0.5))"
	done := h.came(strings.Replace(document, "timeout_seconds: 5", "timeout_seconds: 120", 1), hungry) // a busy machine takes its time
	if done.Failure == nil || done.Failure.Kind != engine.FailMemory || done.MemoryBytes > 33<<20 || done.MemoryBytes < 16<<20 {
		t.Errorf("under max_memory_mb: 32 it had %d bytes, %+v", done.MemoryBytes, done.Failure)
	}
	p := parse(t, document)
	for what, c := range map[string]struct {
		req    jscall.Request
		refuse error
	}{
		"less time":    {jscall.Request{Code: "for (;;) {}", Timeout: 20 * time.Millisecond}, nil},
		"more time":    {jscall.Request{Code: "1", Timeout: 6 * time.Second}, fault.ErrForbidden},
		"more memory":  {jscall.Request{Code: "1", MemoryBytes: 33 << 20}, fault.ErrForbidden},
		"no memory":    {jscall.Request{Code: "1", MemoryBytes: 1 << 20}, fault.ErrInvalid},
		"negative":     {jscall.Request{Code: "1", Timeout: -1}, fault.ErrInvalid},
		"a bad run":    {jscall.Request{Code: "1", Run: "../x"}, fault.ErrInvalid},
		"a long task":  {jscall.Request{Code: "1", Task: strings.Repeat("x", 9<<10)}, fault.ErrInvalid},
		"no language":  {jscall.Request{Code: "1", Language: "basic"}, fault.ErrInvalid},
		"no UTF-8":     {jscall.Request{Code: "1\xff"}, fault.ErrInvalid},
		"a long frown": {jscall.Request{Code: strings.Repeat(" ", 1<<20+1)}, fault.ErrInvalid},
	} {
		c.req.Policy = p
		done, err := h.Make(t.Context(), c.req)
		if c.refuse != nil && !errors.Is(err, c.refuse) || c.refuse == nil && (err != nil || done.Failure == nil || done.Failure.Kind != engine.FailTime) {
			t.Errorf("%s: %+v, %v", what, done.Failure, err)
		}
	}
	if _, err := h.make("packages: { on_hold: freeze }\n", "1"); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("on_hold: freeze: %v", err)
	}
	if _, err := h.make("defaults: { max_memory_mb: 2 }\n", "1"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("max_memory_mb: 2: %v", err)
	}
}

// TestTools: a call's tools go by the same door as a sandbox's.
func TestTools(t *testing.T) {
	t.Parallel()
	h := open(t)
	tried := func(code string) string {
		done := h.came(document, "try { callTool("+code+") } catch (e) { e.message }")
		if done.Failure != nil {
			t.Errorf("%s: %+v", code, done.Failure)
		}
		return done.Value
	}
	for code, want := range map[string]string{
		`'echo', {n: 7}`:                 `{"n":7}`,
		`'echo', {n: 101}`:               `rule few denies it`,
		`'echo', {m: 1}`:                 `the arguments are not what the tool takes`,
		`'echo', 7`:                      `no JSON object`,
		`'echo', {n: '\ud800'}`:          `not JSON as it has to be`,
		`'secret'`:                       `tool_allowlist`,
		`'no such'`:                      `tool_allowlist`,
		`'echo\u0000', {}`:               `tool_allowlist`,
		`'echo', {toJSON: () => '{"n"'}`: `no JSON object`,
		`'pay', {n: 1}`:                  `rule money has a person asked first: money leaves; a person approves it on the host: cofferdam approvals approve ap-`,
	} {
		if got := tried(code); !strings.Contains(got, want) {
			t.Errorf("callTool(%s) came to %s; want %s", code, got, want)
		}
	}
	if h.paid.Load() != 0 {
		t.Error("a call that nobody approved was made")
	}
	pending, _, err := h.queue.List(t.Context(), approval.Filter{States: []approval.State{approval.Pending}})
	if err != nil || len(pending) != 1 {
		t.Fatalf("%d requests wait, %v", len(pending), err)
	}
	if _, err := approvaltest.AnswerShown(t.Context(), h.queue, "bob", approval.Verdict{IDs: []string{pending[0].ID}, State: approval.Approved, Reason: "fine"}); err != nil {
		t.Fatal(err)
	}
	if got := tried(`'pay', {n: 2}`); !strings.Contains(got, "a person") { // not what was approved
		t.Errorf("other arguments: %s", got)
	}
	if got := tried(`'pay', {n: 1}`); got != "1" {
		t.Errorf("the approved call came to %s", got)
	}
	if got := tried(`'pay', {n: 1}`); !strings.Contains(got, "a person") || h.paid.Load() != 1 { // it was for one call
		t.Errorf("the same again: %s, paid %d times", got, h.paid.Load())
	}
}

// TestWhoWaitsIsAnswered: with on_hold: wait, code stands still until the person has
// answered, and that is not its own time.
func TestWhoWaitsIsAnswered(t *testing.T) {
	t.Parallel()
	h := open(t)
	text := strings.ReplaceAll(strings.ReplaceAll(document, "on_hold: fail", "on_hold: wait 1m"), "timeout_seconds: 5", "timeout_seconds: 1")
	answered, waits := make(chan error, 1), make(chan audit.Record, 1)
	h.log.FailWhen(func(r audit.Record) error {
		if r.Kind == audit.KindTool && r.Outcome == audit.Pending {
			waits <- r
		}
		return nil
	})
	go func() {
		r := <-waits
		if !h.Has(r.Sandbox) || len(h.Runs()) != 1 {
			answered <- errors.New("the call that waits is not under way")
			return
		}
		_, err := approvaltest.AnswerShown(t.Context(), h.queue, "bob", approval.Verdict{IDs: []string{r.Approval}, State: approval.Approved, Reason: "fine"})
		answered <- err
	}()
	done := h.came(text, "callTool('pay', {n: 1})")
	if err := <-answered; err != nil || done.Value != "1" {
		t.Errorf("%q, %+v, %v", done.Value, done.Failure, err)
	}
}

// TestWhoLeaves: a call ends with its client, and that is on record.
func TestWhoLeaves(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := h.Make(ctx, jscall.Request{Code: "for (;;) {}", Policy: parse(t, document)})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	records := h.commands()
	if ended := records[len(records)-1]; ended.Outcome != audit.Finished || ended.Detail["failure"] != "left" || *ended.Exit != 1 {
		t.Errorf("%+v", ended)
	}
}
