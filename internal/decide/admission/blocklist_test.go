package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestABlocklistedNameIsBlockedEvenIfTheUpstreamHasNone: a removed look-alike
// is refused for the policy's reason.
func TestABlocklistedNameIsBlockedEvenIfTheUpstreamHasNone(t *testing.T) {
	h := newHouse(t, Limits{})
	for name, want := range map[string]audit.Outcome{"evil": audit.Blocked, "no-such-thing": audit.Failed} {
		a, err := h.Failed(t.Context(), door.Failure{
			Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name},
			ResolvedBy: policy.ByIntegrity, Reason: "the upstream has no such project or file",
		})
		must(t, err)
		all := h.records(t)
		if got := all[len(all)-1]; got.Outcome != want || got.Rule != a.Decision.Rule {
			t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
}
