package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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
