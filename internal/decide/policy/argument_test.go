package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// calling is a call of a tool with arguments.
func calling(t *testing.T, name, arguments string) policy.CommandInput {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber()
	var members map[string]any
	if err := decoder.Decode(&members); err != nil {
		t.Fatal(err)
	}
	return policy.CommandInput{Tool: &name, Arguments: &policy.Arguments{Text: arguments, Members: members}}
}

// onArgument is a document with one rule about the argument x, which does the opposite otherwise.
func onArgument(action, operator, value string) string {
	otherwise := map[string]string{"deny": "allow", "allow": "deny"}[action]
	return fmt.Sprintf("defaults: { action: %s }\nrules: [ { name: r, action: %s, condition: { field: arguments.x, operator: %s, value: %s } } ]\n", otherwise, action, operator, value)
}

// verdict tells by a rule that denies and one that allows whether it holds: 1, 0, or E if
// that can't be told, which denies either way.
func verdict(t *testing.T, operator, value string, call policy.CommandInput) string {
	t.Helper()
	denying := mustParse(t, onArgument("deny", operator, value)).DecideCommand(call).Allowed()
	allowing := mustParse(t, onArgument("allow", operator, value)).DecideCommand(call).Allowed()
	switch {
	case denying && !allowing:
		return "0"
	case !denying && allowing:
		return "1"
	case denying:
		t.Errorf("%s %s of %s is allowed by a rule and its opposite", operator, value, call.Arguments.Text)
	}
	return "E"
}

// TestArgumentsAsPython: conditions on arguments hold as Python's operators, which the
// toolkit's evaluator uses, say that they do. An expression looks in what all write alike.
func TestArgumentsAsPython(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 2))
	one := func(of []string) string { return of[draw.IntN(len(of))] }
	values := []string{`"a"`, `"ab"`, `"1"`, `"5"`, `"true"`, `"é"`, `1`, `0`, `-1`, `5`, `5.0`, `0.1`, `9007199254740993`, `1000`, `true`, `false`}
	arguments := append([]string{
		`""`, `"b"`, `"ba"`, `null`, `-0`, `1e3`, `1.5`, `1e400`, `-1e400`, `0.10000000000000000001`, `9007199254740992.0`, `9007199254740992`, `123456789012345678901234567890`,
		`[]`, `["a", 5]`, `[5.0]`, `[true]`, `[["a"]]`, `{}`, `{"a": 1}`, `{"5": 1}`,
	}, values...)
	patterns := []string{`"^a"`, `"1"`, `"^[0-9]+$"`, `"(?i)TRUE"`, `"^-?0$"`, `"x|$"`}
	type question struct{ operator, value, argument string }
	var asked []question
	var in bytes.Buffer
	for range 1500 {
		q := question{one([]string{"eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "contains", "matches"}), one(values), one(arguments)}
		switch q.operator {
		case "in", "not_in":
			q.value = "[" + q.value + ", " + one(values) + "]"
		case "matches":
			q.value = one(patterns)
		}
		asked = append(asked, q)
		fmt.Fprintf(&in, "[%q, %s, %s]\n", q.operator, q.value, q.argument)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/arguments.py")
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Fields(string(out))
	if len(answers) != len(asked) {
		t.Fatalf("%d answers to %d questions", len(answers), len(asked))
	}
	seen := map[string]int{}
	for i, q := range asked {
		got := verdict(t, q.operator, q.value, calling(t, "t", `{"x": `+q.argument+`}`))
		unlike := q.operator == "matches" && strings.ContainsAny(q.argument, ".e[{") && got == "E"
		if got != answers[i] && !unlike {
			t.Errorf("%s %s of %s: %s, and Python says %s", q.operator, q.value, q.argument, got, answers[i])
		}
		seen[got]++
	}
	if seen["0"] < 100 || seen["1"] < 100 || seen["E"] < 100 {
		t.Errorf("the draws are too alike: %v", seen)
	}
}

func TestArgumentsByTheirNames(t *testing.T) {
	t.Parallel()
	document := func(field string) string {
		return "defaults: { action: allow }\nrules: [ { name: r, action: deny, condition: { field: " + field + ", operator: eq, value: root } } ]\n"
	}
	for _, tt := range []struct {
		field, arguments string
		want             policy.Effect
	}{
		{"arguments.user", `{"user":"root"}`, policy.Deny},
		{"arguments.user", `{"user":"rooty"}`, policy.Allow},
		{"arguments.user", `{}`, policy.Allow}, // a missing one never matches; the schema can demand it
		{"arguments.user", `{"user":null}`, policy.Allow},
		{"arguments.who.user", `{"who":{"user":"root"}}`, policy.Deny},
		{"arguments.who.user", `{"who.user":"root"}`, policy.Deny},
		{"arguments.who.user", `{"who.user":"x","who":{"user":"root"}}`, policy.Deny}, // which of them is judged can't be told
		{"arguments.who.user", `{"who.user":"x","who":{"user":"y"}}`, policy.Deny},
		{"arguments.who.user", `{"who.user":null,"who":{"user":"x"}}`, policy.Allow},
		{"arguments.a.b.c", `{"a.b":{"c":"root"}}`, policy.Deny},
		{"arguments.a.b.c", `{"a":{"b.c":"root"}}`, policy.Deny},
		{"arguments.a.b", `{"a":["root"]}`, policy.Allow},
		{"tool", `{}`, policy.Allow},
	} {
		if got := mustParse(t, document(tt.field)).DecideCommand(calling(t, "t", tt.arguments)); got.Effect != tt.want {
			t.Errorf("%s of %s: %+v", tt.field, tt.arguments, got)
		}
	}
	for _, field := range []string{"tool", "tool_name"} {
		if got := mustParse(t, document(field)).DecideCommand(calling(t, "root", "{}")); got.Effect != policy.Deny || got.Rule != "rules.r" {
			t.Errorf("%s: %+v", field, got)
		}
	}
	whole := strings.Replace(document("arguments"), "operator: eq", "operator: contains", 1)
	if got := mustParse(t, whole).DecideCommand(calling(t, "t", `{"a":["root"]}`)); got.Effect != policy.Deny {
		t.Errorf("all arguments: %+v", got)
	}
	command := "root"
	if got := mustParse(t, document("arguments.user")).DecideCommand(policy.CommandInput{Command: &command}); got.Effect != policy.Allow {
		t.Errorf("a command has arguments: %+v", got)
	}
}

// TestToolsListed: a tool is listed by the document and by each that narrows it, and by a
// document without the list never.
func TestToolsListed(t *testing.T) {
	t.Parallel()
	both := mustParse(t, "tool_allowlist: [a, b]\n")
	none := mustParse(t, "name: none\n")
	for _, tt := range []struct {
		by     *policy.Policy
		listed string
	}{
		{both, "a b"},
		{none, ""},
		{mustParse(t, "tool_allowlist: []\n"), ""},
		{narrowed(t, both, mustParse(t, "tool_allowlist: [b, c]\n")), "b"},
		{narrowed(t, both, none), ""},
		{narrowed(t, none, both), ""},
	} {
		var listed []string
		for _, name := range []string{"a", "b", "c", "", "*", "A"} {
			d := tt.by.ToolListed(name)
			if d.Allowed() {
				listed = append(listed, name)
			} else if d.Effect != policy.Deny || d.Rule != "tool_allowlist" || d.Reason == "" {
				t.Errorf("%q: %+v", name, d)
			}
		}
		if got := strings.Join(listed, " "); got != tt.listed {
			t.Errorf("%q are listed, and %q should be", got, tt.listed)
		}
	}
	if d := both.ToolListed("c"); d.Suggest != "tool_allowlist:\n  - \"c\"\n" {
		t.Errorf("%q", d.Suggest)
	}
	if d := both.ToolListed("c: [x"); d.Suggest != "" {
		t.Errorf("%q", d.Suggest)
	}
}

// TestRulesNarrowTools: the stricter of two documents decides about a call.
func TestRulesNarrowTools(t *testing.T) {
	t.Parallel()
	p := mustParse(t, "tool_allowlist: [t]\n")
	by := mustParse(t, "tool_allowlist: [t]\ndefaults: { action: allow }\nrules: [ { name: r, action: deny, condition: { field: arguments.n, operator: gt, value: 10 } } ]\n")
	for arguments, want := range map[string]policy.Effect{`{"n":10}`: policy.Allow, `{"n":11}`: policy.Deny, `{"n":100000}`: policy.Deny, `{"n":"11"}`: policy.Deny} {
		if got := narrowed(t, p, by).DecideCommand(calling(t, "t", arguments)); got.Effect != want {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
}

func narrowed(t *testing.T, p, by *policy.Policy) *policy.Policy {
	t.Helper()
	n, ok := p.NarrowedBy(by)
	if !ok {
		t.Fatal("it can't be narrowed")
	}
	return n
}

// TestCallsLeft: the least of the documents counts; without a limit there is none.
func TestCallsLeft(t *testing.T) {
	t.Parallel()
	three, one := mustParse(t, "defaults: { max_tool_calls: 3 }\n"), mustParse(t, "defaults: { max_tool_calls: 1 }\n")
	for _, tt := range []struct {
		p    *policy.Policy
		made int64
		want bool
	}{
		{mustParse(t, "name: p\n"), 1_000_000, true},
		{three, 2, true},
		{three, 3, false},
		{mustParse(t, "defaults: { max_tool_calls: 0 }\n"), 0, false},
		{narrowed(t, three, one), 0, true},
		{narrowed(t, three, one), 1, false},
		{narrowed(t, one, three), 1, false},
	} {
		if d := policy.CallsLeft(tt.p, tt.made); d.Allowed() != tt.want || d.Rule != "defaults.max_tool_calls" {
			t.Errorf("%d made: %+v", tt.made, d)
		}
	}
	if _, err := policy.Parse("p", []byte("defaults: { max_tool_calls: 1.5 }\n")); err == nil || !strings.Contains(err.Error(), "p:1:29: defaults.max_tool_calls must be a whole number") {
		t.Error(err)
	}
}
