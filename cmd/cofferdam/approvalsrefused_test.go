package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// TestOnlyARefusedAnswerIsNone: of several requests none was answered where the daemon says no; where it was lost or
// failed, nobody knows.
func TestOnlyARefusedAnswerIsNone(t *testing.T) {
	t.Parallel()
	status := func(status int) error { return &client.Error{Problem: api.Problem{Status: status, Detail: "no"}} }
	for _, c := range []struct {
		err  error
		none bool
	}{
		{status(http.StatusConflict), true},
		{status(http.StatusForbidden), true},
		{fmt.Errorf("answer: %w", status(http.StatusNotFound)), true},
		{status(http.StatusInternalServerError), false},
		{client.ErrLost, false},
		{context.DeadlineExceeded, false},
		{errors.New("read a request: no"), false},
	} {
		got := refusedWhole([]string{"ap-1", "ap-2"}, c.err)
		if !errors.Is(got, c.err) || strings.Contains(got.Error(), "none of the 2 was answered") != c.none {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
