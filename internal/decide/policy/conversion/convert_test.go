package conversion_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/conversion"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// whole is a document with most of what those of the toolkit have.
const whole = `# a comment
version: 1.0
name: support
description: >
  Of two
  lines.
disclaimer: not advice
metadata: { jurisdiction: XX, list: [1, 2] }
scope: "src/**"
inherit: false
network_allowlist: ["api.example", "not a host"]
tool_allowlist: [send_email, "no tool"]
sandbox_mounts: { input_dir: /srv/in, output_dir: null }
defaults: { action: audit, max_tokens: 4096, confidence_threshold: 0.8, max_tool_calls: 10, max_cpu: 0.5, max_memory_mb: null, timeout_seconds: 90, network_default: allow }
rules:
  - { name: output, condition: { field: output, operator: matches, value: "x" }, action: deny }
  - { name: tokens, condition: { field: token_count, operator: gt, value: 4096 }, action: deny, priority: 5 }
  - { name: mail, condition: { field: tool_name, operator: in, value: [send_email, 5] }, action: allow, priority: "90", message: "yes", override: true }
  - { name: mail, condition: { field: tool_name, operator: eq, value: yes }, action: allow }
  - { name: unicode, condition: { field: code, operator: matches, value: "caf\\u00e9" }, action: block, priority: 100 }
  - { name: night, condition: { field: code, operator: contains, value: "x" }, action: deny, dynamic_condition: { type: time_window, start_time: "22:00", end_time: "06:00" } }
  - { name: day, condition: { field: code, operator: contains, value: "x" }, action: allow, dynamic_condition: { type: day_of_week, days_of_week: [1] } }
  - { name: order, condition: { field: code, operator: gt, value: 5 }, action: allow }
`

func TestWhole(t *testing.T) {
	t.Parallel()
	made, err := conversion.Convert("d.yaml", []byte(whole), conversion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `name: support
version: "1.0"
description: Of two lines.
defaults:
  action: allow
  max_tool_calls: 10
  max_cpu: 0.5
  timeout_seconds: 90
  network_default: deny
network_allowlist:
  - api.example
tool_allowlist:
  - send_email
sandbox_mounts:
  input_dir: /srv/in
rules:
  - name: mail
    condition:
      field: tool_name
      operator: in
      value:
        - send_email
    action: allow
    priority: 90
    message: "yes"
  - name: unicode
    condition:
      field: code
      operator: matches
      value: "caf\\u00e9"
    action: block
    priority: 100
  - name: night
    condition:
      field: code
      operator: contains
      value: x
    action: deny
  - name: order
    condition:
      field: code
      operator: matches
      value: "\\A"
    action: deny
`
	if diff := cmp.Diff(want, string(made.Document)); diff != "" {
		t.Error(diff)
	}
	var notes []string
	for _, n := range made.Notes {
		notes = append(notes, fmt.Sprintf("%d %s %t", n.Line, n.What, n.Changes))
	}
	wantNotes := []string{
		"7 disclaimer false", "8 metadata false", "9 scope false", "10 inherit false",
		"11 network_allowlist not a host true", "12 tool_allowlist no tool true", "12 tool_allowlist true",
		"14 defaults.action false", "14 defaults.max_tokens false", "14 defaults.confidence_threshold false", "14 defaults.network_default true",
		"16 rule output false", "17 rule tokens false", "19 rule mail-2 false", "21 rule night true", "22 rule day true", "23 rule order false",
	}
	if diff := cmp.Diff(wantNotes, notes); diff != "" {
		t.Error(diff)
	}
	if made.Rules != 4 {
		t.Errorf("%d rules", made.Rules)
	}
}

// rule is a document with one rule, whose default is the other way.
func rule(field, operator, value, action string) string {
	byDefault := "deny"
	if action == "deny" {
		byDefault = "allow"
	}
	return fmt.Sprintf("defaults: { action: %s }\nrules:\n  - { name: r, condition: { field: %s, operator: %s, value: %s }, action: %s }\n", byDefault, field, operator, value, action)
}

// TestOperands: what Python comes to, for texts against values of each type.
func TestOperands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operator, value string
		holds, not      []string // texts for which the condition holds, and for which it does not
		fails           bool     // it can't be evaluated, which denies
	}{
		{operator: "eq", value: `a`, holds: []string{"a"}, not: []string{"", "b"}},
		{operator: "eq", value: `5`, not: []string{"5", ""}},
		{operator: "eq", value: `"5"`, holds: []string{"5"}},
		{operator: "eq", value: `yes`, not: []string{"yes", "True"}},
		{operator: "eq", value: `null`, not: []string{"null", ""}},
		{operator: "eq", value: `2026-01-01`, not: []string{"2026-01-01"}},
		{operator: "eq", value: `1:30`, not: []string{"1:30"}},
		{operator: "eq", value: `""`, holds: []string{""}, not: []string{"a", "\n"}},
		{operator: "ne", value: `""`, holds: []string{"a", "\n"}, not: []string{""}},
		{operator: "ne", value: `5`, holds: []string{"5", ""}},
		{operator: "gt", value: `""`, holds: []string{"a", "\n"}, not: []string{""}},
		{operator: "lte", value: `""`, holds: []string{""}, not: []string{"a"}},
		{operator: "lt", value: `""`, not: []string{"", "a"}},
		{operator: "gte", value: `""`, holds: []string{"", "a"}},
		{operator: "gt", value: `5`, fails: true},
		{operator: "lte", value: `true`, fails: true},
		{operator: "contains", value: `5`, fails: true},
		{operator: "contains", value: `""`, holds: []string{"", "a"}},
		{operator: "in", value: `[a, 5, null]`, holds: []string{"a"}, not: []string{"5", "", "b"}},
		{operator: "in", value: `[5]`, not: []string{"5"}},
		{operator: "in", value: `[]`, not: []string{""}},
		{operator: "in", value: `["", "a.b"]`, holds: []string{"", "a.b"}, not: []string{"axb", "\n", "a.b\n"}},
		{operator: "in", value: `"abc"`, holds: []string{"", "a", "bc", "abc"}, not: []string{"ac", "abcd"}},
		{operator: "in", value: `5`, fails: true},
		{operator: "in", value: `{ a: 1, 5: 2 }`, holds: []string{"a"}, not: []string{"5"}},
		{operator: "not_in", value: `[a, 5]`, holds: []string{"b", "5", ""}, not: []string{"a"}},
		{operator: "not_in", value: `[5]`, holds: []string{"5", "a"}},
		{operator: "not_in", value: `null`, fails: true},
		{operator: "matches", value: `5`, holds: []string{"x5"}, not: []string{"x"}},
		{operator: "matches", value: `true`, holds: []string{"isTrue"}, not: []string{"true"}},
		{operator: "matches", value: `off`, holds: []string{"False"}, not: []string{"off"}},
		{operator: "matches", value: `null`, holds: []string{"None"}, not: []string{"null"}},
		{operator: "matches", value: `""`, holds: []string{"", "x"}},
		{operator: "matches", value: `"^\\d+$"`, holds: []string{"٣"}, not: []string{"x"}},
	} {
		for _, action := range []string{"allow", "deny"} {
			made, err := conversion.Convert("d", []byte(rule("code", c.operator, c.value, action)), conversion.Options{})
			if err != nil {
				t.Errorf("%s %s: %v", c.operator, c.value, err)
				continue
			}
			p, err := policy.Parse("p", made.Document)
			if err != nil {
				t.Fatal(err)
			}
			allows := func(code string) bool {
				return p.DecideCommand(policy.CommandInput{Code: &code}).Allowed()
			}
			for _, code := range c.holds {
				if allows(code) != (action == "allow") {
					t.Errorf("%s where code %s %s: %q", action, c.operator, c.value, code)
				}
			}
			for _, code := range c.not {
				if allows(code) == (action == "allow") {
					t.Errorf("%s where code %s %s: not %q", action, c.operator, c.value, code)
				}
			}
			if c.fails && (allows("") || allows("5") || allows("a")) {
				t.Errorf("%s where code %s %s: it can't be evaluated, and is not denied", action, c.operator, c.value)
			}
			if none := p.DecideCommand(policy.CommandInput{Tool: new("t")}); none.Allowed() != (action == "deny") {
				t.Errorf("%s where code %s %s: holds without the field", action, c.operator, c.value)
			}
		}
	}
}

// TestRefusalsAreNotLost: what refuses and can't be said fails, and what permits goes.
func TestRefusalsAreNotLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ operator, value string }{
		{"matches", `"(?=x)y"`}, {"matches", `"("`}, {"matches", `1.50`}, {"matches", `[a]`}, {"not_in", `["", a]`}, {"in", `"` + strings.Repeat("abcdefghij", 4) + `"`},
	} {
		document := []byte(rule("code", c.operator, c.value, "deny"))
		if _, err := conversion.Convert("d", document, conversion.Options{}); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "--drop-refusals") {
			t.Errorf("%s %s: %v", c.operator, c.value, err)
		}
		made, err := conversion.Convert("d", document, conversion.Options{DropRefusals: true})
		if err != nil || made.Rules != 0 || len(made.Notes) != 1 || !made.Notes[0].Changes {
			t.Errorf("%s %s: %+v %v", c.operator, c.value, made, err)
		}
		made, err = conversion.Convert("d", []byte(rule("code", c.operator, c.value, "allow")), conversion.Options{})
		if err != nil || made.Rules != 0 || len(made.Notes) != 1 || !made.Notes[0].Changes {
			t.Errorf("allow %s %s: %+v %v", c.operator, c.value, made, err)
		}
	}
}

// TestADenialInWhatPermits: a rule that permits, and may be one that can't be evaluated, is not
// left out where something behind it permits.
func TestADenialInWhatPermits(t *testing.T) {
	t.Parallel()
	const first = "rules:\n  - { name: r, condition: { field: code, operator: matches, value: %s }, action: allow, priority: %d }\n"
	const second = "  - { name: s, condition: { field: code, operator: ne, value: x }, action: allow }\n"
	for document, fails := range map[string]bool{
		fmt.Sprintf(first, `"("`, 0):                                                               false,
		fmt.Sprintf("defaults: { action: allow }\n"+first, `"("`, 0):                               true,
		fmt.Sprintf("defaults: { action: audit }\n"+first, `[a]`, 0):                               true,
		fmt.Sprintf("defaults: { action: allow }\n"+first, `1.5`, 0):                               false,
		fmt.Sprintf(first, `"("`, 5) + second:                                                      true,
		fmt.Sprintf(first, `"("`, 0) + second:                                                      true,
		fmt.Sprintf(first, `"("`, -5) + second:                                                     false,
		fmt.Sprintf(first, `"("`, 5) + strings.Replace(second, "code", "output", 1):                false,
		fmt.Sprintf(first, `"("`, 5) + strings.Replace(second, "action: allow", "action: deny", 1): false,
	} {
		if _, err := conversion.Convert("d", []byte(document), conversion.Options{}); (err != nil) != fails {
			t.Errorf("%s%v", document, err)
		}
	}
}

// TestAnEmptyListOfTools: it is kept, nothing of it can be called, and a note says that this is
// a change.
func TestAnEmptyListOfTools(t *testing.T) {
	t.Parallel()
	made, err := conversion.Convert("d", []byte("tool_allowlist: []\ndefaults: { action: allow }\n"), conversion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("p", made.Document)
	if err != nil {
		t.Fatal(err)
	}
	code := "1"
	if p.DecideCommand(policy.CommandInput{Tool: new("t")}).Allowed() || !p.DecideCommand(policy.CommandInput{Code: &code}).Allowed() {
		t.Errorf("%s", made.Document)
	}
	if len(made.Notes) != 1 || !made.Notes[0].Changes {
		t.Errorf("%+v", made.Notes)
	}
}

// TestTheStrictDefault: what says nothing denies.
func TestTheStrictDefault(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"rules: []\n", "defaults: {}\n", "defaults:\n", "tool_allowlist: [a]\n", "defaults: { action: block }\n", `{"rules": null}`} {
		made, err := conversion.Convert("d", []byte(document), conversion.Options{})
		if err != nil {
			t.Errorf("%q: %v", document, err)
			continue
		}
		p, err := policy.Parse("p", made.Document)
		if err != nil {
			t.Fatal(err)
		}
		if code := "1"; p.DecideCommand(policy.CommandInput{Code: &code}).Allowed() {
			t.Errorf("%q allows", document)
		}
	}
}

// TestTheLenientRelease: 4.1.0 permits where nothing is said, reads no dynamic condition and
// mounts nothing. None of that changes what it decides.
func TestTheLenientRelease(t *testing.T) {
	t.Parallel()
	const when = "dynamic_condition: { type: day_of_week, days_of_week: [1] }"
	one := func(text, action string) string {
		return fmt.Sprintf("{ name: %s, condition: { field: code, operator: contains, value: %s }, action: %s, %s }", text, text, action, when)
	}
	for document, allowed := range map[string]map[string]bool{
		"rules: []\n":                           {"x": true},
		"defaults: { max_cpu: 1 }\n":            {"x": true},
		"defaults: { action: block }\n":         {"x": false},
		"rules: [ " + one("bad", "deny") + " ]": {"x": true, "bad": false},
		"defaults: { action: deny }\nrules: [ " + one("good", "allow") + " ]\nsandbox_mounts: { input_dir: /srv/in }\n": {"x": false, "good": true},
	} {
		made, err := conversion.Convert("d", []byte(document), conversion.Options{Lenient: true})
		if err != nil {
			t.Errorf("%q: %v", document, err)
			continue
		}
		p, err := policy.Parse("p", made.Document)
		if err != nil {
			t.Fatal(err)
		}
		for code, want := range allowed {
			if p.DecideCommand(policy.CommandInput{Code: &code}).Allowed() != want {
				t.Errorf("%q: %q is allowed: %t\n%s", document, code, !want, made.Document)
			}
		}
		for _, n := range made.Notes {
			if n.Changes {
				t.Errorf("%q: %+v", document, n)
			}
		}
		if strings.Contains(string(made.Document), "mounts") {
			t.Errorf("%s", made.Document)
		}
	}
}

func TestWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for what, document := range map[string]string{
		"nothing": "", "a text": "x", "a list": "[]", "another's": "apiVersion: v1\nkind: ConfigMap\n", "two": "rules: []\n---\nrules: []\n",
		"no YAML": "a: [", "twice": "rules: []\nrules: []\n", "merge": "x: &x { a: b }\nrules: []\n<<: *x\n", "a key that is none": "rules: []\n? [a]\n: b\n",
		"rules": "rules: x\n", "a rule": "rules: [x]\n", "no action": "rules: [ { name: a, condition: { field: code, operator: eq, value: x } } ]\n",
		"an operator": rule("code", "like", "x", "deny"), "an action": rule("code", "eq", "x", "maybe"),
		"a priority": "rules: [ { name: a, condition: { field: code, operator: eq, value: x }, action: deny, priority: high } ]\n",
		"defaults":   "defaults: [x]\n", "an action by default": "defaults: { action: maybe }\n", "a list of hosts": "network_allowlist: x\n",
		"a bomb": bomb + "rules: []\n", "depth": "rules: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "size": "# " + strings.Repeat("x", 2<<20),
		"itself": "rules: &r [ *r ]\n",
	} {
		if made, err := conversion.Convert("d", []byte(document), conversion.Options{}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %q %v", what, made.Document, err)
		}
	}
}

// TestPrioritiesKeepTheirOrder: also those that are beyond what is read.
func TestPrioritiesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	document := `rules:
  - { name: low, condition: { field: code, operator: ne, value: "x" }, action: deny, priority: -9000000000 }
  - { name: high, condition: { field: code, operator: eq, value: "a" }, action: allow, priority: 9000000000 }
`
	made, err := conversion.Convert("d", []byte(document), conversion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("p", made.Document)
	if err != nil {
		t.Fatal(err)
	}
	if code := "a"; !p.DecideCommand(policy.CommandInput{Code: &code}).Allowed() {
		t.Error("the order is another")
	}
}

// FuzzConvert: whatever is read, it is an error that says so or a policy that loads.
func FuzzConvert(f *testing.F) {
	f.Add(whole)
	f.Add(rule("code", "in", `["", a]`, "deny"))
	f.Add("rules: &r [ *r ]\n")
	f.Fuzz(func(t *testing.T, document string) {
		made, err := conversion.Convert("d", []byte(document), conversion.Options{})
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if _, err := policy.Parse("p", made.Document); err != nil {
			t.Fatal(err)
		}
	})
}
