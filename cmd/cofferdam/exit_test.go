package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestExitCode: what the daemon answers and what this program finds out itself end it with
// one code, which is the table's.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, k := range fault.Kinds() {
		answered := fmt.Errorf("it said: %w", &client.Error{Problem: api.Problem{Status: k.Status}})
		here := fmt.Errorf("here: %w", fault.New(k.Category, "x"))
		want := exitFailure
		if k.Name == "invalid" || k.Name == "not_found" {
			want = exitUsage
		}
		if exitCode(answered) != want || exitCode(here) != want {
			t.Errorf("%s: answered %d, here %d, want %d", k.Name, exitCode(answered), exitCode(here), want)
		}
	}
	for name, err := range map[string]error{
		"without a category": errors.New("x"),
		"no token":           &client.Error{Problem: api.Problem{Status: http.StatusUnauthorized}},
		"caused by input":    fault.Wrap(fault.ErrUnavailable, fault.Invalid("x"), "y"),
	} {
		if code := exitCode(err); code != exitFailure {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code := exitCode(fmt.Errorf("more: %w", &exitError{code: exitDetached, err: fault.Invalid("x")})); code != exitDetached {
		t.Errorf("a code of its own became %d", code)
	}
}

// TestATimeLimitThatNobodyKept: a command that was not ended at its time limit is not told as ended.
func TestATimeLimitThatNobodyKept(t *testing.T) {
	t.Parallel()
	const sentence = "the command may run on; destroy the sandbox"
	for _, c := range []struct{ error, told string }{{"", "was ended"}, {sentence, sentence}} {
		err := judgeExit(api.Exit{Code: 137, Signal: "KILL", TimedOut: true, Error: c.error})
		if exitCode(err) != exitTimeout || !strings.Contains(err.Error(), c.told) || c.error != "" && strings.Contains(err.Error(), "was ended") {
			t.Errorf("%q is told as %v", c.error, err)
		}
	}
}
