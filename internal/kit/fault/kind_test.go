package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		name   string
		status int
		code   string
		exit   int
	}{
		{fault.Invalid("x"), "invalid", http.StatusBadRequest, "invalid_argument", 2},
		{fault.New(fault.ErrNotFound, "x"), "not_found", http.StatusNotFound, "not_found", 2},
		{fault.New(fault.ErrConflict, "x"), "conflict", http.StatusConflict, "failed_precondition", 1},
		{fault.New(fault.ErrForbidden, "x"), "forbidden", http.StatusForbidden, "permission_denied", 1},
		{fault.Exhausted(0, "x"), "exhausted", http.StatusTooManyRequests, "resource_exhausted", 1},
		{fault.New(fault.ErrUnavailable, "x"), "unavailable", http.StatusServiceUnavailable, "unavailable", 1},
		{errors.New("x"), "internal", http.StatusInternalServerError, "internal", 1},
		{context.DeadlineExceeded, "unavailable", http.StatusServiceUnavailable, "unavailable", 1},
		// What a thing is counts, not what it came from.
		{fault.Wrap(fault.ErrUnavailable, fault.Invalid("y"), "x"), "unavailable", http.StatusServiceUnavailable, "unavailable", 1},
		{fmt.Errorf("more: %w", fault.Wrap(fault.ErrConflict, fault.ErrNotFound, "x")), "conflict", http.StatusConflict, "failed_precondition", 1},
	} {
		k := fault.KindOf(tt.err)
		if k.Name != tt.name || k.Status != tt.status || k.Code != tt.code || k.Exit != tt.exit {
			t.Errorf("KindOf(%v) = %+v", tt.err, k)
		}
		if again := fault.KindNamed(k.Name); again.Status != k.Status {
			t.Errorf("KindNamed(%q) = %+v", k.Name, again)
		}
		if again := fault.KindAnswered(k.Status); again.Name != k.Name {
			t.Errorf("KindAnswered(%d) = %+v", k.Status, again)
		}
	}
}

// An answer that no category has, such as one for want of a token, is a failure of ours.
func TestKindAnsweredElse(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, http.StatusUnauthorized, http.StatusBadGateway} {
		if k := fault.KindAnswered(status); k.Category != nil || k.Exit != 1 {
			t.Errorf("%d: %+v", status, k)
		}
	}
}

// An error that one process tells another by name and sentence is of the same kind there.
func TestRemake(t *testing.T) {
	t.Parallel()
	for _, k := range fault.Kinds() {
		err := fault.KindNamed(k.Name).Remake("what happened")
		if !errors.Is(err, k.Category) || err.Error() != "what happened" {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	if err := fault.KindNamed("no such kind").Remake("100%"); err.Error() != "100%" || fault.KindOf(err).Status != http.StatusInternalServerError {
		t.Errorf("an error of ours: %v", err)
	}
}
