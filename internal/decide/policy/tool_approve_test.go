package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestRulesThatAskAPerson: such a rule holds a call, in its place among the others; a
// document beside it that denies counts more, and one that allows less.
func TestRulesThatAskAPerson(t *testing.T) {
	t.Parallel()
	asking := mustParse(t, `
name: asking
tool_allowlist: [a, b]
defaults: { action: allow }
rules:
  - { name: never, action: deny, priority: 3, condition: { field: arguments.n, operator: gt, value: 100 } }
  - { name: small, action: allow, priority: 2, condition: { field: arguments.n, operator: lt, value: 10 } }
  - { name: asks, action: approve, message: "look twice", condition: { field: tool_name, operator: eq, value: a } }
`)
	other := func(text string) *policy.Policy {
		p, ok := asking.NarrowedBy(mustParse(t, "tool_allowlist: [a, b]\n"+text))
		if !ok {
			t.Fatal("it can't be narrowed")
		}
		return p
	}
	for _, c := range []struct {
		by              *policy.Policy
		tool, arguments string
		want            policy.Effect
	}{
		{asking, "a", `{"n": 50}`, policy.Hold},
		{asking, "a", `{}`, policy.Hold},
		{asking, "a", `{"n": 5}`, policy.Allow},
		{asking, "a", `{"n": 500}`, policy.Deny},
		{asking, "a", `{"n": "5"}`, policy.Deny}, // it can't be told
		{asking, "b", `{"n": 50}`, policy.Allow},
		{other("defaults: { action: allow }\n"), "a", `{}`, policy.Hold},
		{other("defaults: { action: deny }\n"), "a", `{}`, policy.Deny},
		{other("rules: [ { name: all, action: approve, condition: { field: arguments, operator: contains, value: \"{\" } } ]\n"), "b", `{}`, policy.Hold},
		{other("mode: observe\n"), "a", `{}`, policy.Hold},
	} {
		d := c.by.DecideCommand(calling(t, c.tool, c.arguments))
		if d.Effect != c.want || d.Would != "" || c.want == policy.Hold && c.tool == "a" && (d.Rule != "rules.asks" || d.Reason != "rule asks has a person asked first: look twice") {
			t.Errorf("%s %s: %+v", c.tool, c.arguments, d)
		}
	}
	command := "ls"
	if d := asking.DecideCommand(policy.CommandInput{Command: &command}); !d.Allowed() {
		t.Errorf("a command: %+v", d)
	}
}

// TestAnswersAboutCalls: an answer counts for the tool and the arguments that it was given about, a
// denial before an approval, and for nothing that does not wait.
func TestAnswersAboutCalls(t *testing.T) {
	t.Parallel()
	hold := policy.Decision{Effect: policy.Hold, Rule: "rules.asks"}
	yes := policy.Approval{ID: "ap-yes", By: "bob", Digests: []string{"sha256:tool", "sha256:a"}}
	no := policy.Approval{ID: "ap-no", By: "eve", Denied: true, Reason: "not\nnow", Digests: []string{"sha256:tool", "sha256:b"}}
	for _, c := range []struct {
		d       policy.Decision
		digest  string
		answers []policy.Approval
		want    policy.Effect
		says    string
	}{
		{hold, "sha256:a", nil, policy.Hold, ""},
		{hold, "sha256:a", []policy.Approval{no, yes}, policy.Allow, "this call of refund was approved by bob (ap-yes)"},
		{hold, "sha256:b", []policy.Approval{yes, no}, policy.Deny, "this call of refund was denied by eve (ap-no): not"},
		{hold, "sha256:c", []policy.Approval{yes, no}, policy.Hold, ""},
		{hold, "", []policy.Approval{{ID: "ap-1"}}, policy.Hold, ""},
		{hold, "sha256:a", []policy.Approval{{ID: "ap-1", Digests: []string{"sha256:other", "sha256:a"}}}, policy.Hold, ""},
		{hold, "sha256:a", []policy.Approval{{ID: "ap-1", Digests: []string{"sha256:a"}}}, policy.Hold, ""}, // of an earlier version
		{policy.Decision{Effect: policy.Deny}, "sha256:a", []policy.Approval{yes}, policy.Deny, ""},
	} {
		d := policy.AnswerCall(c.d, "refund", []string{"sha256:tool", c.digest}, c.answers)
		if d.Effect != c.want || !strings.HasPrefix(d.Reason, c.says) || strings.Contains(d.Reason, "\n") {
			t.Errorf("%s: %+v", c.digest, d)
		}
	}
}
