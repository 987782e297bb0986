package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// output makes the lines of events of one package: "run T", "pass T", "fail T", "pass",
// "fail", and anything else as the package's own output.
func output(t *testing.T, lines ...string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		action, test, _ := strings.Cut(line, " ")
		e := event{Action: action, Package: "p", Test: test}
		if !slices.Contains([]string{"start", "run", "pass", "fail", "skip"}, action) {
			e = event{Action: "output", Package: "p", Output: line + "\n"}
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
		b.WriteString("\n")
	}
	return b.String()
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name  string
		first []string
		later []string
		flaky string
		red   string
	}{
		{name: "green", first: []string{"start", "run A", "pass A", "PASS", "pass"}},
		{
			name:  "a hiccup",
			first: []string{"start", "run A", "fail A", "run B", "pass B", "FAIL", "fail"},
			later: []string{"start", "run A", "pass A", "PASS", "pass"}, flaky: "A",
		},
		{
			name:  "a hiccup of a subtest",
			first: []string{"start", "run A", "run A/b_c", "fail A/b_c", "run A/d", "pass A/d", "fail A", "FAIL", "fail"},
			later: []string{"start", "run A", "run A/b_c", "pass A/b_c", "pass A", "PASS", "pass"}, flaky: "A/b_c",
		},
		{
			name:  "red twice",
			first: []string{"start", "run A", "fail A", "FAIL", "fail"},
			later: []string{"start", "run A", "fail A", "FAIL", "fail"}, red: "A of p failed, and passed in no second run",
		},
		{
			name:  "a parent that fails by itself, too",
			first: []string{"start", "run A", "run A/b", "fail A/b", "fail A", "FAIL", "fail"},
			later: []string{"start", "run A", "run A/b", "pass A/b", "fail A", "FAIL", "fail"}, flaky: "A/b", red: "A of p failed",
		},
		{
			name:  "a second run that asked nothing",
			first: []string{"start", "run A", "fail A", "FAIL", "fail"},
			later: []string{"start", "PASS", "pass"}, red: "A of p failed, and passed in no second run",
		},
		{
			name:  "a second run that skipped",
			first: []string{"start", "run A", "fail A", "FAIL", "fail"},
			later: []string{"start", "run A", "skip A", "PASS", "pass"}, red: "A of p failed, and passed in no second run",
		},
		{
			name:  "TestMain fails after all its tests",
			first: []string{"start", "run A", "pass A", "PASS", "leaked", "fail"},
			later: []string{"start", "PASS", "pass"}, red: "p failed beside its tests",
		},
		{
			name:  "the process ends during a test",
			first: []string{"start", "run A", "fail A", "run B", "fail"},
			later: []string{"start", "run A", "pass A", "run B", "pass B", "PASS", "pass"}, flaky: "A", red: "p ended during B",
		},
		{
			name:  "the process ends between two tests",
			first: []string{"start", "run A", "fail A", "fail"},
			later: []string{"start", "run A", "pass A", "PASS", "pass"}, flaky: "A", red: "p ended before all its tests",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := read(strings.NewReader(output(t, c.first...) + "\n" + output(t, c.later...)))
			if err != nil {
				t.Fatal(err)
			}
			again, red := s.verdict()
			var names []string
			for _, f := range again {
				names = append(names, f.Test)
			}
			if strings.Join(names, " ") != c.flaky {
				t.Errorf("flaky are %q, want %q", names, c.flaky)
			}
			if all := strings.Join(red, "\n"); (c.red == "") != (all == "") || !strings.Contains(all, c.red) {
				t.Errorf("red is %q, want %q", all, c.red)
			}
		})
	}
}

func TestEventsThatAreNone(t *testing.T) {
	if _, err := read(strings.NewReader("what is this\n")); err == nil {
		t.Error("a line that is no event was read")
	}
}
