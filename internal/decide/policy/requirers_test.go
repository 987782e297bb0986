package policy_test

import (
	"strings"
	"testing"
)

// TestRequirersAreNamedOnce: two releases of a parent that require the same are one reason.
func TestRequirersAreNamedOnce(t *testing.T) {
	p := mustParse(t, withEdges[len("\npackages: { default: allow }"):])
	d := p.Decide(clock(), wheel(python("child", "3.0"),
		edge("rich", "rich", "child", "~=4.2"), edge("rich", "rich", "child", "~=4.2"), edge("rich", "rich", "child", "~=4.1"), edge("rich", "rich", "child", ">=5")))
	if want := ": rich requires ~=4.2, rich requires ~=4.1, rich requires >=5"; !strings.HasSuffix(d.Reason, want) {
		t.Errorf("the reason is %q, and does not end in %q", d.Reason, want)
	}
}
