package pages

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// A line of releases has an epoch: where all of epoch 1 is withheld, what is shown of
// the same number without an epoch is another line, far below.
func TestLinesAreOfOneEpoch(t *testing.T) {
	of := func(text string, shown bool) *pageRelease {
		r := newPageRelease(pkgref.Python, text)
		r.shown = shown
		return r
	}
	if !missed([]*pageRelease{of("1!1.0", false), of("1.5", true)}, "") {
		t.Error("the highest line is withheld, and nobody is told")
	}
	if missed([]*pageRelease{of("1!1.1", false), of("1!1.0", true)}, "") {
		t.Error("something of the highest line is shown")
	}
}
