package admission

import (
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestLedgersAreBounded: of however many sandboxes copies are made, with records that
// count or without, what is kept of them stays within bounds, and the last is there.
func TestLedgersAreBounded(t *testing.T) {
	t.Parallel()
	for _, records := range []int{0, 3, maxLedgers + 1} {
		var l ledgers
		n := 3 * maxLedgers / (1 + records)
		for i := range n + 2 {
			one := l.takeLedger(Ancestor{Sandbox: fmt.Sprint("sb", i)})
			one.records = make([]audit.Record, records)
			l.countGrowth(one)
		}
		held := 0
		for _, one := range l.of {
			held += 1 + len(one.records)
		}
		if held != l.size || len(l.of) != len(l.order) || held > max(maxLedgers, 1+records) {
			t.Errorf("of %d sandboxes with %d records each, %d are kept in %d ledgers (it thinks %d)", n+2, records, held, len(l.of), l.size)
		}
		if last := fmt.Sprint("sb", n+1); l.of[last] == nil {
			t.Errorf("%s is not kept", last)
		}
	}
}
