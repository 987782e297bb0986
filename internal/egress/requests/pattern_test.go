package requests

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/policy/expression"
)

// TestASearchEnds: what takes too long is refused, and says how to go on; a client that is gone is not
// searched for; and of one sandbox one body is searched at a time.
func TestASearchEnds(t *testing.T) {
	e, err := expression.Parse("secret")
	if err != nil {
		t.Fatal(err)
	}
	sought, body := []*expression.Expression{e}, []byte("nothing of it")
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	late, end := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer end()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, c := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of one case
		reason string
		status int
	}{
		"in time":  {ctx: t.Context()},
		"too late": {late, "takes longer than 1m0s; send less at a time", http.StatusRequestEntityTooLarge},
		"gone":     {gone, "the connection has ended", 0},
	} {
		got := patternSearch{c.ctx, sought}.findInBody(r, body)
		if (got == nil) != (c.reason == "") || got != nil && (!strings.Contains(got.Reason, c.reason) || got.Status != c.status) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	c := &Carrier{config: Config{Connection: Connection{Computing: make(chan struct{}, 1)}}}
	if got := c.searchBody(r, body, sought); got != nil || len(c.config.Computing) != 0 {
		t.Errorf("alone: %v", got)
	}
	c.config.Computing <- struct{}{} // another body is being searched
	if got := c.searchBody(r.WithContext(gone), body, sought); got == nil {
		t.Error("it did not wait for the other")
	}
}
