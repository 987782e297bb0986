package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// runner is a tool in a test.
type runner func(ctx context.Context, call tool.Call) ([]byte, error)

// Definition implements tool.Runner.
func (runner) Definition() string { return "a function of the test" }

func (r runner) Run(ctx context.Context, call tool.Call) ([]byte, error) { return r(ctx, call) }

// bench is a controller with tools and a sandbox, sb1, that may call some of them.
type bench struct {
	*Controller
	log    *approvaltest.Log
	made   []string      // calls, as the tool order got them
	begun  chan struct{} // one for each call of hang
	change func(*Run)
}

const benchPolicy = `
tool_allowlist: [order, hang, broken, nowhere, keeps]
defaults: { action: allow }
rules:
  - { name: small, action: deny, message: "ask for fewer", condition: { field: arguments.n, operator: gt, value: 10 } }
  - { name: never, action: deny, condition: { field: tool, operator: eq, value: never } }
`

// tooled makes a bench; limits and log may be zero.
func tooled(t *testing.T, limits CallLimits, log *approvaltest.Log, change func(*Run)) *bench {
	t.Helper()
	if log == nil {
		log = &approvaltest.Log{}
	}
	b := &bench{log: log, begun: make(chan struct{}, 10), change: change}
	schema := func(text string) *tool.Schema {
		s, err := tool.ParseSchema(text)
		must(t, err)
		return s
	}
	set, err := tool.NewSet([]tool.Tool{
		{Name: "order", Description: "looks up", JSON: true, Schema: schema(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false}`), Runner: runner(func(_ context.Context, call tool.Call) ([]byte, error) {
			b.made = append(b.made, call.Run+" "+call.Sandbox+" "+call.Arguments)
			return []byte(`{"state": "sent"}`), nil
		})},
		{Name: "hang", Schema: schema(""), Runner: runner(func(ctx context.Context, _ tool.Call) ([]byte, error) {
			b.begun <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})},
		{Name: "broken", Schema: schema(""), Runner: runner(func(context.Context, tool.Call) ([]byte, error) {
			code := 3
			return nil, &tool.Failure{Exit: &code, Sentence: "the tool failed: its program ended with the code 3", Cause: errors.New("a secret of the host")}
		})},
		{Name: "keeps", Record: true, Schema: schema(""), Runner: runner(func(context.Context, tool.Call) ([]byte, error) { return nil, nil })},
		{Name: "others", Schema: schema(""), Runner: runner(func(context.Context, tool.Call) ([]byte, error) { return []byte("x"), nil })},
	})
	must(t, err)
	b.Controller = New(Config{Log: log, Tools: set, Calls: limits})
	must(t, b.Register(b.run(t)))
	return b
}

func (b *bench) run(t *testing.T) Run {
	t.Helper()
	r := Run{Sandbox: "sb1", Run: "run1", User: "ann", Policy: parse(t, benchPolicy)}
	if b.change != nil {
		b.change(&r)
	}
	return r
}

func (b *bench) call(t *testing.T, name, arguments string) door.ToolAnswer {
	t.Helper()
	a, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: name, Arguments: arguments})
	must(t, err)
	return a
}

// toolTexts are the records of tools, shortly.
func toolTexts(log *approvaltest.Log) []string {
	var all []string
	for _, r := range log.All() {
		if r.Kind == audit.KindTool {
			d := r.Detail
			all = append(all, strings.Join(strings.Fields(fmt.Sprint(r.Outcome, " ", d["tool"], " ", r.Rule, " ", d["arguments"], " ", d["arguments_bytes"], " ", d["result_bytes"], " ", d["began_seq"], " ", r.Reason)), " "))
		}
	}
	return all
}

func TestCalls(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, nil)
	for _, c := range []struct {
		name, arguments string
		want            door.ToolOutcome
		says            string
	}{
		{"order", `{ "id":"\u0037" }`, door.ToolAnswered, `{"state":"sent"}`},
		{"others", `{}`, door.ToolRefused, "tool_allowlist does not name this tool"},
		{"no-such", `{}`, door.ToolRefused, "tool_allowlist does not name this tool"}, // the same, so that nothing is learnt
		{"nowhere", `{}`, door.ToolUnknown, "has none of that name"},
		{"order", `{}`, door.ToolInvalid, "id"},
		{"order", `{"id":7}`, door.ToolInvalid, "id: "},
		{"order", `[]`, door.ToolInvalid, "no JSON object"},
		{"order", `{"id":"7","n":11}`, door.ToolRefused, "rule small denies it: ask for fewer"},
		{"order", `{"id":"7","n":10}`, door.ToolAnswered, `{"state":"sent"}`},
		{"broken", ``, door.ToolFailed, "its program ended with the code 3"},
		{"keeps", `{"a": 1}`, door.ToolAnswered, `""`},
	} {
		a := b.call(t, c.name, c.arguments)
		if a.Outcome != c.want || a.RequestID == "" || !strings.Contains(a.Reason+string(a.Result), c.says) || strings.Contains(a.Reason, "secret") {
			t.Errorf("%s %s: %+v", c.name, c.arguments, a)
		}
	}
	if diff := cmp.Diff([]string{`run1 sb1 {"id":"7"}`, `run1 sb1 {"id":"7","n":10}`}, b.made); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`started order defaults.action 10 no rule matches, and defaults.action is allow`,
		`finished order defaults.action 16 0`,
		`blocked others tool_allowlist tool_allowlist does not name this tool`,
		`blocked no-such tool_allowlist tool_allowlist does not name this tool`,
		`blocked nowhere tool.unknown the policy lists the tool nowhere, and this installation has none of that name`,
		`blocked order tool.arguments the arguments are not what the tool takes: missing property 'id'`,
		`blocked order tool.arguments the arguments are not what the tool takes: id: got number, want string`,
		`blocked order tool.arguments the arguments are no JSON object`,
		`blocked order rules.small rule small denies it: ask for fewer`,
		`started order defaults.action 17 no rule matches, and defaults.action is allow`,
		`finished order defaults.action 16 9`,
		`started broken defaults.action 2 no rule matches, and defaults.action is allow`,
		`failed broken defaults.action 11 the tool failed: its program ended with the code 3`,
		`started keeps defaults.action {"a":1} 7 no rule matches, and defaults.action is allow`,
		`finished keeps defaults.action 2 13`,
	}
	if diff := cmp.Diff(want, toolTexts(b.log)); diff != "" {
		t.Error(diff)
	}
	for _, r := range b.log.All() {
		if is := r.Kind == audit.KindTool && r.Outcome == audit.Failed; is != (r.Exit != nil && *r.Exit == 3) {
			t.Errorf("its program's code is not on record: %+v", r)
		}
	}
	told, err := b.Refusals(t.Context(), "sb1", "", 0)
	must(t, err)
	var shown []string
	for _, r := range told {
		shown = append(shown, fmt.Sprint(r.What, " ", r.Name, " ", r.Rule, " ", r.Count, " ", r.Suggest != ""))
	}
	if diff := cmp.Diff([]string{"tool others tool_allowlist 1 true", "tool no-such tool_allowlist 1 true", "tool nowhere tool.unknown 1 false", "tool order tool.arguments 1 false", "tool order tool.arguments 1 false", "tool order tool.arguments 1 false", "tool order rules.small 1 false"}, shown); diff != "" {
		t.Error(diff)
	}
	summed, err := b.Summary(t.Context(), "run1")
	must(t, err)
	var used []string
	for _, u := range summed.Tools {
		used = append(used, fmt.Sprint(u.Name, " ", u.Calls, " ", u.Failed, " ", u.Refused))
	}
	if diff := cmp.Diff([]string{"broken 1 1 0", "keeps 1 0 0", "no-such 0 0 1", "nowhere 0 0 1", "order 2 0 4", "others 0 0 1"}, used); diff != "" {
		t.Error(diff)
	}
	list, err := b.Tools(t.Context(), "sb1")
	if err != nil || len(list) != 4 || list[3].Name != "order" || list[3].Description != "looks up" || !strings.Contains(list[3].Arguments, `"required":["id"]`) {
		t.Errorf("%+v %v", list, err)
	}
}

// TestSomeMayCallNone: those whose policy has no list, those that only weigh installs, and
// those that nobody knows.
func TestSomeMayCallNone(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Run){
		"a policy without a list": func(r *Run) { r.Policy = parse(t, "name: p\n") },
		"a plan":                  func(r *Run) { r.Plan = true },
	} {
		b := tooled(t, CallLimits{}, nil, change)
		if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolRefused || len(b.made) > 0 {
			t.Errorf("%s: %+v", what, a)
		}
		if list, err := b.Tools(t.Context(), "sb1"); err != nil || len(list) > 0 {
			t.Errorf("%s: %v %v", what, list, err)
		}
		if _, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb2", Tool: "order"}); err == nil {
			t.Errorf("%s: an unknown sandbox calls", what)
		}
	}
}

// TestCallsAreOnRecordFirst: no record, no call; and no answer whose end is not on record.
func TestCallsAreOnRecordFirst(t *testing.T) {
	t.Parallel()
	for _, outcome := range []audit.Outcome{audit.Started, audit.Finished} {
		b := tooled(t, CallLimits{}, nil, nil)
		b.log.FailWhen(func(r audit.Record) error {
			if r.Outcome == outcome {
				return errors.New("the disk is full")
			}
			return nil
		})
		a, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "order", Arguments: `{"id":"7"}`})
		if err == nil || len(a.Result) > 0 || (outcome == audit.Started) != (len(b.made) == 0) {
			t.Errorf("%s: %+v %v, %d calls", outcome, a, err, len(b.made))
		}
	}
}

// hanging begins a call that does not end by itself, and gives what it ends with.
func (b *bench) hanging(ctx context.Context, t *testing.T) <-chan door.ToolAnswer {
	t.Helper()
	answers := make(chan door.ToolAnswer, 1)
	go func() {
		a, err := b.CallTool(ctx, door.ToolAsk{Sandbox: "sb1", Tool: "hang"})
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	<-b.begun
	return answers
}

// TestCallsEndWithTheirSandbox: and are on record before its end; and with the guest that
// gives them up.
func TestCallsEndWithTheirSandbox(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	given := b.hanging(ctx, t)
	cancel()
	if a := <-given; a.Outcome != door.ToolFailed {
		t.Errorf("%+v", a)
	}
	answers := b.hanging(t.Context(), t)
	must(t, b.SandboxEnded(t.Context(), "sb1", "done"))
	if a := <-answers; a.Outcome != door.ToolFailed || !strings.Contains(a.Reason, "was ended") {
		t.Errorf("%+v", a)
	}
	all := b.log.All()
	if n := len(all); all[n-1].Kind != audit.KindSandbox || all[n-2].Kind != audit.KindTool || all[n-2].Outcome != audit.Failed {
		t.Errorf("%v", toolTexts(b.log))
	}
	if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolBusy || !strings.Contains(a.Reason, "has ended") {
		t.Errorf("a call after the end: %+v", a)
	}
}

// TestCallsAreFew: at a time and in a second, of a sandbox and of all.
func TestCallsAreFew(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		limits CallLimits
		hang   int
		more   int
		says   string
	}{
		"of a sandbox": {CallLimits{Running: 2}, 2, 0, "of this sandbox"},
		"of all":       {CallLimits{All: 2}, 1, 0, "on this host"}, // of which one owner has one
		"in a second":  {CallLimits{PerSecond: 1}, 0, 4, "in a second"},
	} {
		b := tooled(t, c.limits, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var under []<-chan door.ToolAnswer
		for range c.hang {
			under = append(under, b.hanging(ctx, t))
		}
		for range c.more {
			b.call(t, "order", `{"id":"7"}`)
		}
		if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolBusy || !strings.Contains(a.Reason, c.says) {
			t.Errorf("%s: %+v", what, a)
		}
		cancel()
		for _, answers := range under {
			<-answers
		}
		if c.hang > 0 {
			if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolAnswered {
				t.Errorf("%s, later: %+v", what, a)
			}
		}
	}
}

// TestCallsOfADaemonThatWent: the next one knows that they ended, and what was refused.
func TestCallsOfADaemonThatWent(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	b := tooled(t, CallLimits{}, log, nil)
	b.call(t, "order", `{"id":"7"}`)
	b.call(t, "others", ``)
	ctx, cancel := context.WithCancel(t.Context())
	lost := b.hanging(ctx, t)
	before := len(log.All())
	next := New(Config{Log: log})
	must(t, next.Restore(t.Context(), b.run(t)))
	if got := toolTexts(log); len(log.All()) != before+1 || got[len(got)-1] != "failed hang defaults.action 3 the daemon that made the call ended before the tool had answered" {
		t.Errorf("%q", got)
	}
	told, err := next.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(told) != 1 || told[0].What != "tool" || told[0].Name != "others" {
		t.Errorf("%+v %v", told, err)
	}
	third := New(Config{Log: log})
	must(t, third.Restore(t.Context(), b.run(t)))
	if len(log.All()) != before+1 {
		t.Error("the call has ended twice")
	}
	cancel()
	<-lost
}

// TestManyNames: a guest that makes names up fills the log with a bounded number of them.
func TestManyNames(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	c := New(Config{Log: log, Limits: Limits{Names: 5}, Calls: CallLimits{PerSecond: 1_000}})
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run1", Policy: parse(t, benchPolicy)}))
	for i := range 50 {
		a, err := c.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: fmt.Sprintf("n%d\n\x1b[31m%s", i, strings.Repeat("é", 5_000))})
		if err != nil || a.Outcome != door.ToolRefused {
			t.Fatalf("%+v %v", a, err)
		}
	}
	if n := len(toolTexts(log)); n != 6 {
		t.Errorf("%d records", n)
	}
	for _, text := range toolTexts(log) {
		if len(text) > 2_000 || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%q", text)
		}
	}
}

// TestCallsUnderATightenedPolicy: what narrows a live run counts at once.
func TestCallsUnderATightenedPolicy(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, nil)
	b.call(t, "order", `{"id":"7"}`)
	narrower := parse(t, "tool_allowlist: [hang]\n")
	must(t, b.NarrowPolicy(t.Context(), "sb1", narrower))
	if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolRefused {
		t.Errorf("%+v", a)
	}
	if list, err := b.Tools(t.Context(), "sb1"); err != nil || len(list) != 1 || list[0].Name != "hang" {
		t.Errorf("%+v %v", list, err)
	}
}

// TestMaxToolCalls: so many are made and no more, at once or in turn, before a restart or
// after it; one that is refused, or is not on record, was not made.
func TestMaxToolCalls(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	b := tooled(t, CallLimits{}, log, func(r *Run) {
		r.Policy = parse(t, "tool_allowlist: [order, hang]\ndefaults: { action: allow, max_tool_calls: 3 }\n")
	})
	b.call(t, "others", `{}`)
	b.call(t, "order", `[]`)
	log.FailWhen(func(r audit.Record) error {
		if r.Outcome == audit.Started {
			return errors.New("the disk is full")
		}
		return nil
	})
	if _, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: "order", Arguments: `{"id":"7"}`}); err == nil {
		t.Error("a call without a record")
	}
	log.FailWhen(nil)
	ctx, cancel := context.WithCancel(t.Context())
	under := b.hanging(ctx, t) // it counts from its beginning
	if a := b.call(t, "order", `{"id":"7"}`); a.Outcome != door.ToolAnswered {
		t.Errorf("%+v", a)
	}
	cancel()
	<-under
	next := tooled(t, CallLimits{}, log, b.change)
	next.Unregister("sb1")
	must(t, next.Restore(t.Context(), next.run(t)))
	for i, want := range []door.ToolOutcome{door.ToolAnswered, door.ToolRefused, door.ToolRefused} {
		if a := next.call(t, "order", `{"id":"7"}`); a.Outcome != want || (want == door.ToolRefused) != strings.Contains(a.Reason, "has made the 3 calls") {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if len(b.made)+len(next.made) != 2 {
		t.Errorf("%v %v", b.made, next.made)
	}
}

// TestTenThousandCalls: at a time, by one guest, of a tool that hangs: few are made, the others
// are refused, which is one record and a number; another sandbox calls meanwhile.
func TestTenThousandCalls(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{Running: 4, PerSecond: 100_000}, nil, nil)
	other := b.run(t)
	other.Sandbox, other.Run = "sb2", "run2"
	must(t, b.Register(other))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	outcomes := make(chan door.ToolOutcome, 10_000)
	for range cap(outcomes) {
		go func() {
			a, err := b.CallTool(ctx, door.ToolAsk{Sandbox: "sb1", Tool: "hang"})
			if err != nil {
				t.Error(err)
			}
			outcomes <- a.Outcome
		}()
	}
	count := map[door.ToolOutcome]int{}
	for range cap(outcomes) - 4 {
		count[<-outcomes]++
	}
	if a, err := b.CallTool(ctx, door.ToolAsk{Sandbox: "sb2", Tool: "order", Arguments: `{"id":"7"}`}); err != nil || a.Outcome != door.ToolAnswered {
		t.Errorf("another sandbox: %+v %v", a, err)
	}
	cancel()
	for range 4 {
		count[<-outcomes]++
	}
	if count[door.ToolBusy] != 9_996 || count[door.ToolFailed] != 4 {
		t.Errorf("%v", count)
	}
	busy := 0
	for _, r := range b.log.All() {
		if r.Rule == door.RuleToolQuota {
			busy++
		}
	}
	if busy != 1 {
		t.Errorf("%d records of what was refused", busy)
	}
	if told, err := b.Refusals(t.Context(), "sb1", "", 0); err != nil || len(told) != 1 || told[0].Count != 9_996 {
		t.Errorf("%+v %v", told, err)
	}
}

// TestWhatIsNoCall: it is on record, and nothing is called.
func TestWhatIsNoCall(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, nil)
	for range 3 {
		a, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Malformed: "a call has at most\n73728 bytes"})
		if err != nil || a.Outcome != door.ToolInvalid || a.RequestID == "" {
			t.Errorf("%+v %v", a, err)
		}
	}
	if diff := cmp.Diff([]string{"blocked (no name) tool.form a call has at most?73728 bytes"}, toolTexts(b.log)); diff != "" || len(b.made) > 0 {
		t.Error(diff)
	}
}
