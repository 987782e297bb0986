package report

import (
	"bytes"
	"strings"
	"testing"
)

const one = `{"check":"guest","passed":true,"detail":"seen","seconds":1}` + "\n"

func TestWhatIsWrittenIsRead(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	told := []Result{
		{Check: Guest, Passed: true, Detail: "two\nlines and \xff"},
		{Check: Control, Detail: strings.Repeat("long", mostDetail), Seconds: 2},
	}
	for _, r := range told {
		if err := w.Tell(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	results, err := Read(&out)
	if err != nil || len(results) != 2 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	if r := results[Guest]; !r.Passed || r.Detail != "two\nlines and ?" {
		t.Errorf("%+v", r)
	}
	if r := results[Control]; r.Passed || len(r.Detail) > mostDetail+100 || r.Seconds != 2 {
		t.Errorf("passed %t, %d bytes, %v s", r.Passed, len(r.Detail), r.Seconds)
	}
}

// TestABrokenReport: whatever is not a whole report is an error, and what could be read
// before is told.
func TestABrokenReport(t *testing.T) {
	last := `{"end":1}` + "\n"
	for name, c := range map[string]struct {
		text, says string
		read       int
	}{
		"whole":              {one + last, "", 1},
		"empty":              {"", "without its last line", 0},
		"no last line":       {one, "without its last line", 1},
		"cut in a line":      {one + `{"check":"doc`, "without its last line", 1},
		"cut in the end":     {one + `{"end":1}`, "without its last line", 1},
		"one got lost":       {one + `{"end":2}` + "\n", "told 2 results, and 1 came", 1},
		"twice":              {one + one + last, "told twice", 1},
		"no JSON":            {one + "[  0.1] kernel\n" + last, "line 2", 1},
		"two values":         {strings.TrimSpace(one) + one + last, "line 1", 0},
		"another field":      {`{"check":"x","passed":true,"detail":"d","seconds":1,"more":1}` + "\n" + last, "unknown field", 0},
		"a field missing":    {`{"check":"x","detail":"d","seconds":1}` + "\n" + last, "passed is missing", 0},
		"another type":       {`{"check":"x","passed":"yes","detail":"d","seconds":1}` + "\n" + last, "line 1", 0},
		"behind the end":     {one + last + one, "follows the last line", 1},
		"an end of no count": {one + `{"end":"one"}` + "\n", "line 2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := Read(strings.NewReader(c.text))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want it to say %q", err, c.says)
			}
			if len(results) != c.read {
				t.Errorf("%d results", len(results))
			}
		})
	}
}

func TestJudge(t *testing.T) {
	plain, control := Check{Name: "a"}, Check{Name: "a", Fails: "no such thing"}
	for name, c := range map[string]struct {
		check  Check
		result *Result
		ok     bool
	}{
		"passed":                              {plain, &Result{Passed: true, Detail: "seen"}, true},
		"failed":                              {plain, &Result{Detail: "seen"}, false},
		"missing":                             {plain, nil, false},
		"passed, and nothing seen":            {plain, &Result{Passed: true}, false},
		"the control fails as it must":        {control, &Result{Detail: "there is no such thing"}, true},
		"the control passes":                  {control, &Result{Passed: true, Detail: "there is no such thing"}, false},
		"the control fails of something else": {control, &Result{Detail: "no file"}, false},
		"the control is missing":              {control, nil, false},
	} {
		results := map[string]Result{}
		if c.result != nil {
			results["a"] = *c.result
		}
		if err := Judge(c.check, results); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStep: who cuts a guest off says what it was at.
func TestStep(t *testing.T) {
	control := strings.ReplaceAll(one, Guest, Control)
	for name, c := range map[string]struct {
		text  string
		names []string
		want  string
	}{
		"nothing came":      {"", nil, "its start"},
		"one came":          {control, nil, "the check " + Guest},
		"two came":          {control + one, nil, "the check " + Doctor},
		"cut in a line":     {control + one[:9], nil, "the check " + Guest},
		"others were asked": {one, []string{Guest, Demo}, "the check " + Demo},
		"all came":          {one, []string{Guest}, "its end"},
		"it ended":          {one + `{"end":1}` + "\n", nil, "its end"},
	} {
		asked, err := Asked(c.names)
		if err != nil {
			t.Fatal(err)
		}
		if got := Step(c.text, asked); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhatIsAsked: who names nothing asks for all; who misspells a name
// asks for nothing.
func TestWhatIsAsked(t *testing.T) {
	usual, err := Asked(nil)
	if err != nil || len(usual) < 10 || usual[0].Fails == "" {
		t.Errorf("%d checks, and the first is %+v (%v)", len(usual), usual[0], err)
	}
	if named, err := Asked([]string{Demo, Guest}); err != nil || len(named) != 2 || named[0].Name != Guest || named[1].Name != Demo {
		t.Errorf("%+v (%v)", named, err)
	}
	for _, names := range [][]string{{"gest"}, {Guest, "gest"}, {Guest, Guest}, {""}} {
		if asked, err := Asked(names); err == nil {
			t.Errorf("%q: %+v", names, asked)
		}
	}
}

func TestOneControl(t *testing.T) {
	controls, names := 0, map[string]bool{}
	for _, c := range Checks() {
		if names[c.Name] || c.Name == "" {
			t.Errorf("the name %q is there twice, or none", c.Name)
		}
		names[c.Name] = true
		if c.Fails != "" {
			controls++
		}
	}
	if controls != 1 {
		t.Errorf("%d controls", controls)
	}
	if got := Unknown(map[string]Result{Guest: {}, "other": {}}); len(got) != 1 || got[0] != "other" {
		t.Errorf("unknown are %v", got)
	}
}
