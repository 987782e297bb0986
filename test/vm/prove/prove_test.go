//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/doctor"
	"github.com/cofferdam-dev/cofferdam/test/vm/report"
)

// TestEveryCheckHasItsAnswer: what the host asks is what the guest knows, and nothing else.
func TestEveryCheckHasItsAnswer(t *testing.T) {
	known := checks()
	for _, c := range report.Checks() {
		if known[c.Name] == nil {
			t.Errorf("nobody answers %s", c.Name)
		}
		delete(known, c.Name)
	}
	for name := range known {
		t.Errorf("nobody asks for %s", name)
	}
}

func TestAnswers(t *testing.T) {
	good := func(context.Context) (string, error) { return "seen", nil }
	bad := func(context.Context) (string, error) { return "", errors.New("wrong") }
	panics := func(context.Context) (string, error) { panic("lost") }
	for name, c := range map[string]struct {
		check  check
		passed bool
		says   string
	}{"good": {good, true, "seen"}, "bad": {bad, false, "wrong"}, "panics": {panics, false, "lost"}, "unknown": {nil, false, "nobody"}} {
		r := answer(name, c.check)
		if r.Check != name || r.Passed != c.passed || !strings.Contains(r.Detail, c.says) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestTheControlIsTold: on a host with controllers of version 1 it passes, on others it
// fails; either way the report is whole.
func TestTheControlIsTold(t *testing.T) {
	port := filepath.Join(t.TempDir(), "port")
	if err := os.WriteFile(port, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{port, report.Control}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(port)
	if err != nil {
		t.Fatal(err)
	}
	results, err := report.Read(bytes.NewReader(data))
	if err != nil || len(results) != 1 || results[report.Control].Detail == "" {
		t.Errorf("%v, %v", results, err)
	}
}

// TestWhatDoctorSays: a doubt about the distribution's runc is no fault of the guest; anything
// else beside the one good line is.
func TestWhatDoctorSays(t *testing.T) {
	line := func(status doctor.Status, sentence string) doctor.Check {
		return doctor.Check{Name: "engine runc", Status: status, Sentence: sentence}
	}
	good := line(doctor.OK, "enforces memory")
	for name, c := range map[string]struct {
		lines []doctor.Check
		fine  bool
	}{
		"one good line":    {[]doctor.Check{good}, true},
		"a doubt beside":   {[]doctor.Check{good, line(doctor.Warn, "runc is the distribution's 1.1.5")}, true},
		"a doubt alone":    {[]doctor.Check{line(doctor.Warn, "runc is the distribution's 1.1.5")}, false},
		"a warning beside": {[]doctor.Check{good, line(doctor.Warn, "no memory limit")}, false},
		"a warning alone":  {[]doctor.Check{line(doctor.Warn, "no memory limit")}, false},
		"a flaw beside":    {[]doctor.Check{good, line(doctor.Warn, "runc 1.1.5 has a flaw")}, false},
		"nothing":          {nil, false},
	} {
		found, err := said(doctor.Report{Checks: c.lines}, "engine runc")
		if (err == nil) != c.fine || c.fine && found != good {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

func TestWhatIsOnRecord(t *testing.T) {
	want := map[string]audit.Outcome{"requests": audit.Installed, "flask": audit.Blocked}
	const (
		installed = `{"package_name":"requests","outcome":"installed"}` + "\n"
		blocked   = `{"package_name":"flask","outcome":"blocked"}` + "\n"
	)
	withheld := map[string]audit.Outcome{"flask": audit.Withheld}
	if err := recorded(`{"package_name":"flask","outcome":"withheld"}`+"\n", withheld); err != nil {
		t.Errorf("withheld: %v", err)
	}
	if err := recorded(`{"package_name":"flask","outcome":"withheld"}`+"\n"+`{"package_name":"flask","outcome":"served"}`+"\n", withheld); err == nil {
		t.Error("what was to be withheld was served")
	}
	for name, c := range map[string]struct {
		lines string
		fine  bool
	}{
		"both":            {installed + blocked, true},
		"none":            {"", false},
		"one":             {installed, false},
		"only served":     {strings.Replace(installed, "installed", "served", 1) + blocked, false},
		"blocked and let": {installed + blocked + `{"package_name":"flask","outcome":"served"}` + "\n", false},
		"no record":       {installed + blocked + "{", false},
	} {
		if err := recorded(c.lines, want); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const verbose = `=== RUN   TestA
=== RUN   TestA/one
    --- PASS: TestA/one (0.10s)
--- PASS: TestA (0.20s)
--- SKIP: TestB (0.00s)
    b_test.go:1: not here
PASS
`

func TestASuitesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		code error
		says string
	}{
		"passed":         {strings.ReplaceAll(verbose, "--- SKIP", "--- PASS"), nil, ""},
		"one is skipped": {verbose, nil, "TestB"},
		"an exit code":   {strings.ReplaceAll(verbose, "SKIP", "PASS"), errors.New("exit status 1"), "exit status 1"},
		"one failed":     {strings.ReplaceAll(verbose, "--- SKIP", "--- FAIL"), nil, "TestB"},
		"nothing ran":    {"testing: warning: no tests to run\nPASS\n", nil, "no test"},
		"cut off":        {strings.TrimSuffix(strings.ReplaceAll(verbose, "--- SKIP", "--- PASS"), "PASS\n"), nil, "last line"},
	} {
		seen, err := judgeSuite(c.out, c.code)
		if c.says == "" && (err != nil || !strings.Contains(seen, "3 tests")) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v", name, seen, err)
		}
	}
}
