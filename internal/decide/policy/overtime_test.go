package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestARuleForWhichThereIsNoTimeRefuses, of each field, also one that would allow, and one of a narrowing's. The control has time.
func TestARuleForWhichThereIsNoTimeRefuses(t *testing.T) {
	t.Parallel()
	text := "print(1)"
	for field, in := range map[string]policy.CommandInput{
		"command": {Command: &text}, "code": {Code: &text}, "findings": {Code: &text, Findings: &text}, "tool": {Tool: &text},
		"arguments": {Tool: &text, Arguments: &policy.Arguments{Text: text}}, "arguments.a": calling(t, "t", `{"a": "print(1)"}`),
	} {
		judging := "defaults: { action: allow }\nrules:\n  - { name: r, action: allow, condition: { field: " + field + ", operator: matches, value: print } }\n"
		narrowed, ok := mustParse(t, "defaults: { action: allow }\n").NarrowedBy(mustParse(t, judging))
		if !ok {
			t.Fatal("it can't be narrowed")
		}
		for when, p := range map[string]*policy.Policy{"its own": mustParse(t, judging), "a narrowing's": narrowed} {
			for over, allowed := range map[bool]bool{false: true, true: false} {
				in.Over = func() bool { return over }
				if d := p.DecideCommand(in); d.Allowed() != allowed || over && !strings.Contains(d.Reason, "takes too long") {
					t.Errorf("%s, %s, over %v: %+v", field, when, over, d)
				}
			}
		}
	}
}
