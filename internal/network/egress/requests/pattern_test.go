package requests

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/expression"
)

// TestOnlyASearchsOwnTimeIsToldAsItsBound: a request may have a deadline of its own, before or behind it.
func TestOnlyASearchsOwnTimeIsToldAsItsBound(t *testing.T) {
	e, err := expression.Parse("secret")
	if err != nil {
		t.Fatal(err)
	}
	for own, want := range map[time.Duration]int{searchTime / 2: 0, 2 * searchTime: http.StatusRequestEntityTooLarge} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			ctx, end := context.WithTimeout(t.Context(), own)
			defer end()
			search, over := searchFor(r.WithContext(ctx), []*expression.Expression{e})
			defer over()
			<-search.ctx.Done()
			if got := search.findInBody(r, []byte("nothing of it")); got == nil || got.Status != want {
				t.Errorf("a request's time of %s: %+v", own, got)
			}
		})
	}
}

// TestASearchEnds: what takes too long is refused, and says how to go on; a client that is gone is not
// searched for; and of one sandbox one body is searched at a time.
func TestASearchEnds(t *testing.T) {
	e, err := expression.Parse("secret")
	if err != nil {
		t.Fatal(err)
	}
	sought, body := []*expression.Expression{e}, []byte("nothing of it")
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	late, end := context.WithDeadlineCause(t.Context(), time.Unix(1, 0), errSearchTime)
	defer end()
	ended, endOwn := context.WithDeadline(t.Context(), time.Unix(1, 0)) // a request's own
	defer endOwn()
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
		"its end":  {ended, "the connection has ended", 0},
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
