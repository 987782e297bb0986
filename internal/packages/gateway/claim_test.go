package gateway

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestAReleaseIsClaimedOnce: its metadata is read once, also when it may not be read as things stand; when
// more leads to its project, what might not be read is claimed anew, and what was read is not.
func TestAReleaseIsClaimedOnce(t *testing.T) {
	w := &guestWalk{read: map[pkgref.Ref]map[string]bool{}}
	project := pkgref.Ref{Ecosystem: "python", Name: "six"}
	for i, version := range []string{"1.0", "1.1", "1.0", "1.1"} {
		if got := w.claimRelease(project, version); got != (i < 2) {
			t.Errorf("claim %d of %s: %v", i, version, got)
		}
	}
	w.setAside(project, "1.1")
	if w.claimRelease(project, "1.1") {
		t.Error("what may not be read is claimed again while nothing has changed")
	}
	w.retryProject(project)
	if w.claimRelease(project, "1.0") || !w.claimRelease(project, "1.1") {
		t.Error("after more leads to it, only what was set aside is claimed")
	}
}
