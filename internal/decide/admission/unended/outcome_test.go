package unended

import (
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestNoKindEndsWellUnasked: of a begin of which nobody knows more it is said that it finished only where that says nothing of
// how; also of a kind that is added later.
func TestNoKindEndsWellUnasked(t *testing.T) {
	finished := []audit.Kind{audit.KindNetwork, audit.KindCommand, audit.KindSandbox}
	for _, k := range append(audit.Kinds(), "one that is added later") {
		if got := recordOfEnd(Begin{Kind: k}, "x").Outcome; (got == audit.Finished) != slices.Contains(finished, k) || got == "" {
			t.Errorf("a %s ends as %q", k, got)
		}
	}
}
