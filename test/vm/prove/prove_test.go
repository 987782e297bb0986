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
