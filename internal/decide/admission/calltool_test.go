package admission

import (
	"context"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// described is a tool in a test that runs something that can be told from another.
type described struct {
	runner

	runs string
}

// Definition implements tool.Runner.
func (d described) Definition() string { return d.runs }

// refunds is a set with the one tool refund, as edit has it.
func refunds(t *testing.T, made *[]string, whose string, edit func(*tool.Tool)) *tool.Set {
	t.Helper()
	schema, err := tool.ParseSchema("")
	must(t, err)
	run := runner(func(context.Context, tool.Call) ([]byte, error) {
		*made = append(*made, whose)
		return []byte("done"), nil
	})
	one := tool.Tool{Name: "refund", Description: "pays back", Schema: schema, Runner: described{run, "command refund"}}
	if edit != nil {
		edit(&one)
	}
	set, err := tool.NewSet([]tool.Tool{one})
	must(t, err)
	return set
}

const refundPolicy = `
packages: { on_hold: fail }
tool_allowlist: [refund]
defaults: { action: allow }
rules:
  - { name: refunds, action: approve, message: "money leaves", condition: { field: tool, operator: eq, value: refund } }
`

// TestAYesIsToTheTool: what a person has allowed is a call of the tool that they were shown, of
// whoever serves it and as it was defined. Another of the same name asks again, as often as it
// has another definition; the same tool goes through (the control).
func TestAYesIsToTheTool(t *testing.T) {
	schema := func(text string) func(*tool.Tool) {
		return func(one *tool.Tool) {
			s, err := tool.ParseSchema(text)
			must(t, err)
			one.Schema = s
		}
	}
	for _, c := range []struct {
		name      string
		edit      func(*tool.Tool)
		own       bool // a later sandbox's own, and the host has none
		asksAgain bool
	}{
		{name: "the same tool"},
		{name: "the sandbox's own", own: true, asksAgain: true},
		{name: "another program", edit: func(one *tool.Tool) { one.Runner = described{one.Runner.(described).runner, "command other"} }, asksAgain: true},
		{name: "another description", edit: func(one *tool.Tool) { one.Description = "pays back twice" }, asksAgain: true},
		{name: "another schema", edit: schema(`{"type":"object","properties":{"cents":{"type":"integer","description":"in thousands"}}}`), asksAgain: true},
		{name: "another limit", edit: func(one *tool.Tool) { one.Limits.Output = 1 << 21 }, asksAgain: true},
		{name: "an answer of another kind", edit: func(one *tool.Tool) { one.JSON = true }, asksAgain: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &approvaltest.Log{}
			queue, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: log})
			must(t, err)
			defer queue.Close()
			var made []string
			installed := func(host *tool.Set, sandbox string, own *tool.Set) *Controller {
				k := New(Config{Log: log, Tools: host, Approvals: queue, Holder: newHolder()})
				h := &askingHouse{Controller: k, log: log, queue: queue}
				h.register(t, sandbox, "fail", func(r *Run) { r.Policy, r.Run, r.Tools = parse(t, refundPolicy), "run-of-"+sandbox, own })
				return k
			}
			call := func(k *Controller, sandbox string) door.ToolAnswer {
				a, err := k.CallTool(t.Context(), door.ToolAsk{Sandbox: sandbox, Tool: "refund", Arguments: `{"cents":7}`})
				must(t, err)
				return a
			}
			first := installed(refunds(t, &made, "host", nil), "sb1", nil)
			a := call(first, "sb1")
			if a.Outcome != door.ToolHeld {
				t.Fatalf("%+v", a)
			}
			request, err := queue.Get(t.Context(), a.Approval)
			must(t, err)
			if request.Call.Source != approval.SourceHost || !strings.HasPrefix(request.Call.Definition, "sha256:") {
				t.Errorf("a person is shown %+v", request.Call)
			}
			_, err = approvaltest.AnswerShown(t.Context(), queue, "bob", approval.Verdict{IDs: []string{request.ID}, State: approval.Approved, Scope: approval.ScopeEverywhere})
			must(t, err)
			if a := call(first, "sb1"); a.Outcome != door.ToolAnswered {
				t.Fatalf("the control: %+v", a)
			}
			host, own := refunds(t, &made, "later", c.edit), (*tool.Set)(nil)
			if c.own {
				host, own = nil, host
			}
			a = call(installed(host, "sb2", own), "sb2")
			if asked := a.Outcome == door.ToolHeld; asked != c.asksAgain || !asked && a.Outcome != door.ToolAnswered {
				t.Errorf("%+v; made by %v", a, made)
			}
			if c.asksAgain != (len(made) == 1) {
				t.Errorf("it was made by %v", made)
			}
			if c.own {
				request, err := queue.Get(t.Context(), a.Approval)
				must(t, err)
				if request.Call.Source != approval.SourceSandbox("sb2") {
					t.Errorf("a person is shown %+v", request.Call)
				}
			}
		})
	}
}
