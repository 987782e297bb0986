package admission

import (
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestAJumpAdmitsNothing: a release that is a day old stays out when the host's clock goes
// a month forward, on the index and as a file; what is old by both times comes in, and
// after the clock is back all is as it was.
func TestAJumpAdmitsNothing(t *testing.T) {
	h := newHouse(t, Limits{})
	h.config.Approvals = newQueue()
	young, old := wheel("numpy", "1.26.4"), wheel("numpy", "1.25.0")
	young.Published = noon().Add(-24 * time.Hour)
	page := indexOf("numpy", "p", young, old)
	file := serving("numpy", "1.26.4")
	file.File.Published = young.Published
	effects := func(wantIndex, wantFile policy.Effect) {
		t.Helper()
		a, err := h.Index(t.Context(), page)
		must(t, err)
		if got := a.Verdicts[a.OfFile[0]].Effect; got != wantIndex {
			t.Errorf("the index says %s of it, not %s", got, wantIndex)
		}
		if got := a.Verdicts[a.OfFile[1]].Effect; got != policy.Allow {
			t.Errorf("the index says %s of what is old", got)
		}
		b, err := h.Serve(t.Context(), file)
		must(t, err)
		if b.Decision.Effect != wantFile {
			t.Errorf("the file: %+v", b.Decision)
		}
	}
	effects(policy.Deny, policy.Deny)
	h.leap(30 * 24 * time.Hour)
	effects(policy.Hold, policy.Hold)
	h.leap(0)
	effects(policy.Deny, policy.Deny)
	if r := h.records(t, audit.Served); len(r) != 0 {
		t.Errorf("served: %+v", r)
	}
	h.advance(7 * 24 * time.Hour) // time that has really passed
	effects(policy.Allow, policy.Allow)
}
