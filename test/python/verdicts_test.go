package python

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/conversion"
)

// evaluator has the toolkit judge: a line for each document, with its contexts; the answer
// is a line of verdicts, null for a document that its loader does not take.
const evaluator = `
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from agent_os.policies import PolicyDocument
from agent_os.policies.evaluator import PolicyEvaluator
for line in sys.stdin:
    case = json.loads(line)
    try:
        e = PolicyEvaluator(policies=[PolicyDocument.model_validate(case["document"])])
    except ValueError:
        print("null")
        continue
    print(json.dumps([e.evaluate(c).allowed for c in case["contexts"]]))
`

type verdictCase struct {
	name     string
	Document map[string]any   `json:"document"`
	Contexts []map[string]any `json:"contexts"`
}

// TestImportedVerdicts: a document that was imported allows nothing that the toolkit's evaluator
// denies, and where no note says that a verdict changes, the two are equal.
func TestImportedVerdicts(t *testing.T) {
	isLong(t)
	for _, release := range toolkits() {
		t.Run(release, func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, 17)) // the same documents each time
			var cases []verdictCase
			for range 4000 {
				c := verdictCase{Document: randomDocument(random)}
				for range 6 {
					c.Contexts = append(c.Contexts, randomContext(random))
				}
				cases = append(cases, c)
			}
			n := compared(t, release, cases)
			if n.equal < 10_000 || n.denied < 2_000 || n.allowed < 2_000 || n.changed == 0 || n.refused == 0 {
				t.Errorf("too little was compared: %+v", n)
			}
		})
	}
}

// TestDocumentsOfAFolder compares documents that are not ours to keep: those of the folder in
// COFFERDAM_TOOLKIT_DOCUMENTS, as JSON. Whatever has rules, and the
// toolkit takes, has to be imported.
func TestDocumentsOfAFolder(t *testing.T) {
	isLong(t)
	dir := os.Getenv("COFFERDAM_TOOLKIT_DOCUMENTS")
	if dir == "" {
		t.Skip("set COFFERDAM_TOOLKIT_DOCUMENTS to a folder with documents of the toolkit, *.json")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no documents: %v", dir, err)
	}
	for _, release := range toolkits() {
		t.Run(release, func(t *testing.T) {
			var cases []verdictCase
			for _, path := range paths {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				c := verdictCase{name: filepath.Base(path)}
				if err := json.Unmarshal(text, &c.Document); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				if _, ruled := c.Document["rules"]; ruled {
					c.Contexts = contextsOf(c.Document)
					cases = append(cases, c)
				}
			}
			if n := compared(t, release, cases); n.refused > 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// contextsOf are calls of every tool, and code with every text, that a document's rules have.
func contextsOf(document map[string]any) []map[string]any {
	var all []map[string]any
	say := func(text string) {
		all = append(all, map[string]any{"action": "execute", "code": "x = '" + text + "'"}, map[string]any{"tool_name": text})
	}
	say("hello")
	rules, _ := document["rules"].([]any)
	for _, r := range rules {
		condition, _ := r.(map[string]any)["condition"].(map[string]any)
		switch v := condition["value"].(type) {
		case string:
			say(v)
			for _, part := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("|()^$", r) }) {
				say(part)
			}
		case []any:
			for _, e := range v {
				say(fmt.Sprint(e))
			}
		}
	}
	return all
}

// compared has both judge.
func compared(t *testing.T, release string, cases []verdictCase) tally {
	t.Helper()
	bin := environment(t, "agt-sandbox[policy]=="+release)
	var input bytes.Buffer
	for _, c := range cases {
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	cmd := exec.CommandContext(t.Context(), bin("python"), "-c", evaluator)
	cmd.Stdin, cmd.Env = &input, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &said, filepath.Join(root(t), "python")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	answers := json.NewDecoder(&out)
	n := tally{options: conversion.Options{Lenient: release == "4.1.0"}}
	for _, c := range cases {
		var theirs []bool
		if err := answers.Decode(&theirs); err != nil {
			t.Fatal(err)
		}
		n.compare(t, c, theirs)
	}
	t.Logf("%+v", n)
	return n
}

// tally counts what was compared.
type tally struct {
	options                conversion.Options
	equal, allowed, denied int // verdicts
	changed                int // documents of which a note says that a verdict may be another
	imported, refused      int // documents that can be imported, and that can't
	theirs                 int // documents that the toolkit's own loader does not take
	stricter               int // verdicts of changed ones
}

func (n *tally) compare(t *testing.T, c verdictCase, theirs []bool) {
	t.Helper()
	text, err := json.Marshal(c.Document)
	if err != nil {
		t.Fatal(err)
	}
	if theirs == nil {
		if c.name == "" {
			t.Fatalf("the toolkit does not take %s", text)
		}
		n.theirs++
		return
	}
	made, err := conversion.Convert("d", text, n.options)
	if err != nil {
		n.refused++
		if c.name != "" {
			t.Logf("%s: %v", c.name, err)
		}
		return
	}
	n.imported++
	p, err := policy.Parse("p", made.Document)
	if err != nil {
		t.Fatal(err)
	}
	changes := false
	for _, note := range made.Notes {
		changes = changes || note.Changes
	}
	if changes {
		n.changed++
	}
	for i, context := range c.Contexts {
		ours := p.DecideCommand(inputOf(context)).Allowed()
		switch {
		case ours == theirs[i]:
			n.equal++
		case ours || !changes:
			t.Errorf("%s\n%v: the toolkit says %t, and we %t:\n%s", text, context, theirs[i], ours, made.Document)
		default:
			n.stricter++
		}
		if theirs[i] {
			n.allowed++
		} else {
			n.denied++
		}
	}
}

func inputOf(context map[string]any) policy.CommandInput {
	var in policy.CommandInput
	if code, ok := context["code"].(string); ok {
		in.Code = &code
	}
	if name, ok := context["tool_name"].(string); ok {
		in.Tool = &name
	}
	return in
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomContext(r *rand.Rand) map[string]any {
	if r.IntN(3) == 0 {
		return map[string]any{"tool_name": pick(r, "send_email", "write_file", "a", "")}
	}
	return map[string]any{"action": "execute", "code": pick(r, "", "a", "ab", "import os", "5", "exec(x)", "a\nb", "True", "é", "aa 12")}
}

func randomDocument(r *rand.Rand) map[string]any {
	document := map[string]any{"name": pick(r, "d", "yes", "a: b", "", "1.0"), "version": "1.0"}
	var rules []map[string]any
	for i := range r.IntN(6) {
		one := map[string]any{
			"name":     pick(r, fmt.Sprintf("r%d", i), "same"),
			"action":   pick(r, "allow", "deny", "audit", "block"),
			"priority": pick(r, 0, 0, 1, 10, -3, 5_000_000),
			"message":  pick(r, "", "no", "a\tb"),
			"condition": map[string]any{
				"field":    pick(r, "code", "code", "code", "action", "tool_name", "output", "token_count"),
				"operator": pick(r, "eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "matches", "contains"),
				"value": pick[any](r, "", "a", "ab", "b+", "5", 5, 2.5, true, false, nil, "yes", []any{"a", "ab"}, []any{"a", 5, nil}, []any{5}, []any{}, []any{"", "a"},
					"^a.*b$", `\bimport\s+os\b`, `(?i)EXEC`, `\u00e9`, "send_email", "execute", "(?=a)", map[string]any{"a": 1}),
			},
		}
		if r.IntN(8) == 0 {
			// It holds at all times, or at none that is not named.
			one["dynamic_condition"] = pick(r, map[string]any{"type": "day_of_week", "days_of_week": []int{1, 2, 3, 4, 5, 6, 7}}, map[string]any{"type": "time_window", "start_time": "00:00", "end_time": "00:00"})
		}
		rules = append(rules, one)
	}
	if r.IntN(10) == 0 {
		document["tool_allowlist"] = pick(r, []string{}, []string{"send_email"})
	}
	if rules != nil || r.IntN(2) == 0 {
		document["rules"] = append([]map[string]any{}, rules...)
	}
	if r.IntN(3) > 0 || rules == nil {
		document["defaults"] = pick(r, map[string]any{}, map[string]any{"action": "allow"}, map[string]any{"action": "audit"}, map[string]any{"action": "block", "max_cpu": 1.5})
	}
	return document
}
