package policy_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestTheActionOfCommandsAndCode is "execute", by which a rule can mean both; a tool call has none.
func TestTheActionOfCommandsAndCode(t *testing.T) {
	p := mustParse(t, "defaults: { action: allow }\nrules: [ { name: r, action: deny, condition: { field: action, operator: eq, value: execute } } ]\n")
	text := "ls"
	for name, c := range map[string]struct {
		in   policy.CommandInput
		want policy.Effect
	}{
		"a command":   {policy.CommandInput{Command: &text}, policy.Deny},
		"code":        {policy.CommandInput{Code: &text}, policy.Deny},
		"a tool call": {calling(t, "t", `{"action":"execute"}`), policy.Allow},
	} {
		if got := p.DecideCommand(c.in); got.Effect != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
