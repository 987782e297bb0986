package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// matching is a document that denies or allows by one expression, and does the
// opposite otherwise.
func matching(action, expression string) string {
	otherwise := map[string]string{"deny": "allow", "allow": "deny"}[action]
	return "defaults: { action: " + otherwise + " }\nrules:\n  - name: r\n    action: " + action +
		"\n    condition: { field: command, operator: matches, value: '" + strings.ReplaceAll(expression, "'", "''") + "' }\n"
}

// TestExpressionsTogether: what a document's expressions come to is bounded.
func TestExpressionsTogether(t *testing.T) {
	document := func(rules int) []byte {
		var b strings.Builder
		b.WriteString("rules:\n")
		for i := range rules {
			fmt.Fprintf(&b, "  - { name: r%d, action: deny, condition: { field: command, operator: matches, value: '(?:ab){1000}(?:cd){1000}' } }\n", i)
		}
		return []byte(b.String())
	}
	if _, err := policy.Parse("p", document(40)); err != nil {
		t.Error(err)
	}
	if _, err := policy.Parse("p", document(60)); err == nil || !strings.Contains(err.Error(), "200000 steps") {
		t.Error(err)
	}
}

// TestExpressionsArePythons: a rule refuses what it refuses in the toolkit, and
// allows no more than there.
func TestExpressionsArePythons(t *testing.T) {
	for _, tt := range []struct {
		action, expression, command string
		want                        policy.Effect
	}{
		{"deny", `a\sb`, "a\u00a0b", policy.Deny},
		{"deny", `a\sb`, "a\vb", policy.Deny},
		{"deny", `a\sb`, "a\u0085b", policy.Deny},
		{"deny", `a\sb`, "a\x1fb", policy.Deny},
		{"deny", `^\d+$`, "٣", policy.Deny},
		{"deny", `^\w+$`, "é", policy.Deny},
		{"deny", `\Bcurl`, "écurl", policy.Deny},
		{"deny", `(?i)pip`, "pıp", policy.Deny},
		{"deny", `(?i)pip`, "PİP", policy.Deny},
		{"deny", `[^\w ]curl`, "ls;curl", policy.Deny},
		{"deny", `rm$\n`, "rm\n", policy.Deny},
		{"deny", `caf\u00e9`, "café", policy.Deny},
		{"deny", `\bcurl\b`, "é curl", policy.Deny},
		{"deny", `\bcurl\b`, "écurl", policy.Allow},
		{"deny", `^\d+$`, "x", policy.Allow},
		{"allow", `^ls\S*$`, "ls\u00a0-l", policy.Deny},
		{"allow", `^[^\s]+$`, "a\u2003b", policy.Deny},
		{"allow", `^ls\W`, "lsé", policy.Deny},
		{"allow", `^\D+$`, "٣", policy.Deny},
		{"allow", `^ls\b`, "lsé", policy.Deny},
		{"allow", `^ls\b`, "ls é", policy.Allow},
		{"allow", `(?a)^ls\S*$`, "ls\u00a0-l", policy.Allow},
		// Where no answer can be told the command is denied, by rules of either kind.
		{"deny", `curl`, "\xff", policy.Deny},
		{"allow", `ls`, "ls \xff", policy.Deny},
		{"deny", `\Bcurl`, "", policy.Deny},
		{"deny", `\bcurl`, "", policy.Allow},
	} {
		p := mustParse(t, matching(tt.action, tt.expression))
		if got := p.DecideCommand(policy.CommandInput{Command: &tt.command}); got.Effect != tt.want {
			t.Errorf("%s %s, %q: %s (%s)", tt.action, tt.expression, tt.command, got.Effect, got.Reason)
		}
	}
}
