package archtest_test

import (
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// written are the packages whose types people and programs get as JSON: /v1, what --json
// prints, and what both pass on.
func written() []string {
	return []string{"api", "cmd/cofferdam", "internal/decide/approval", "internal/decide/audit", "internal/serve/doctor", "internal/decide/pkgref", "internal/decide/policy", "internal/decide/refusal"}
}

// elsewhere are types whose names are fixed by something else: the log's records by the
// log (docs/audit.md), advisories by OSV.
func elsewhere() []string {
	return []string{"internal/decide/audit.Record", "internal/decide/audit.personalEntry", "internal/decide/audit.personalData", "internal/decide/audit.encodedRecord"}
}

// apart are names that look like two spellings of one thing, and are two things.
func apart() map[string]string {
	return map[string]string{
		"Name event":           "of the queue's event: what happened",
		"answer answer_id":     "of a request of the queue: what a person decided, and what an answer names the request by",
		"request request_id":   "the queue's request, and the id that a client was shown",
		"policy policy_digest": "of a sandbox and a snapshot: policy is a document, or the name of one",
		"policy policy_name":   "of a request of the queue: where the document came from",
		"token token_name":     "of a sandbox: the token by its id, and what it is called",
	}
}

// jsonField is a field of a type that is written as JSON.
type jsonField struct{ where, field, key string }

func jsonFields(t *testing.T) []jsonField {
	t.Helper()
	var all []jsonField
	named := map[string]bool{}
	for _, f := range tree(t) {
		if f.test || !slices.Contains(written(), f.pkg) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			where := f.pkg + "." + spec.Name.Name
			named[where] = named[where] || ok
			if !ok || slices.Contains(elsewhere(), where) {
				return true
			}
			for _, field := range structure.Fields.List {
				if field.Tag == nil || len(field.Names) != 1 {
					continue
				}
				tag, _ := strconv.Unquote(field.Tag.Value)
				if key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); key != "" && key != "-" {
					all = append(all, jsonField{where, field.Names[0].Name, key})
				}
			}
			return true
		})
	}
	for _, where := range elsewhere() {
		if !named[where] {
			t.Errorf("%s is exempt from the spellings, and is no type of these packages: take it out, or give it its present name", where)
		}
	}
	return all
}

// TestOneSpellingOfEachField: what one command and one route calls a thing, all call it.
func TestOneSpellingOfEachField(t *testing.T) {
	t.Parallel()
	fields := jsonFields(t)
	if len(fields) < 200 {
		t.Fatalf("only %d fields were found", len(fields))
	}
	for _, problem := range spellings(fields, apart()) {
		t.Error(problem)
	}
}

// TestTwoSpellingsAreFound is the control of the test above.
func TestTwoSpellingsAreFound(t *testing.T) {
	t.Parallel()
	for want, second := range map[string]jsonField{
		"b.T: Run is \"task\" here and \"run\" in a.T":                {"b.T", "Run", "task"},
		"b.T: \"wantedby\" is \"wanted_by\" in a.U":                   {"b.T", "Wants", "wantedby"},
		"b.T: \"run_id\" is the \"run\" of a.T":                       {"b.T", "ID", "run_id"},
		"b.T: \"exitCode\" is not written like the others: exit_code": {"b.T", "Code", "exitCode"},
	} {
		got := spellings([]jsonField{{"a.T", "Run", "run"}, {"a.U", "WantedBy", "wanted_by"}, second}, nil)
		if !slices.Contains(got, want) {
			t.Errorf("%v: %q", second, got)
		}
	}
	if got := spellings([]jsonField{{"a.T", "Run", "run"}, {"b.T", "Run", "run"}, {"b.T", "Runs", "runs"}}, nil); len(got) > 0 {
		t.Error(got)
	}
}

// sameWords tells whether one key has all the words of the other, at its end or at its
// beginning: checkpoints and kept_checkpoints.
func sameWords(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	return a == b || strings.HasPrefix(a, b+"_") || strings.HasSuffix(a, "_"+b)
}

// spellings tells what is spelt in two ways.
func spellings(fields []jsonField, apart map[string]string) []string {
	var problems []string
	byField, byLetters, byKey := map[string]jsonField{}, map[string]jsonField{}, map[string]jsonField{}
	for _, f := range fields {
		byKey[f.key] = f
	}
	well := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, f := range fields {
		if !well.MatchString(f.key) {
			problems = append(problems, f.where+": "+strconv.Quote(f.key)+" is not written like the others: exit_code")
		}
		letters := strings.ReplaceAll(strings.ToLower(f.key), "_", "")
		if first, known := byLetters[letters]; known && first.key != f.key {
			problems = append(problems, f.where+": "+strconv.Quote(f.key)+" is "+strconv.Quote(first.key)+" in "+first.where)
		} else if !known {
			byLetters[letters] = f
		}
		first, known := byField[f.field]
		if !known {
			byField[f.field] = f
		}
		_, two := apart[f.field+" "+f.key]
		_, other := apart[f.field+" "+first.key]
		if known && !sameWords(first.key, f.key) && !two && !other {
			problems = append(problems, f.where+": "+f.field+" is "+strconv.Quote(f.key)+" here and "+strconv.Quote(first.key)+" in "+first.where)
		}
		for _, end := range []string{"_id", "_at", "_name", "_digest", "_time"} {
			base, longer := strings.CutSuffix(f.key, end)
			short, known := byKey[base]
			if _, two := apart[base+" "+f.key]; longer && known && !two {
				problems = append(problems, f.where+": "+strconv.Quote(f.key)+" is the "+strconv.Quote(base)+" of "+short.where)
			}
		}
	}
	return problems
}
