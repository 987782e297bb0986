package exchange

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/reading"
)

// TestEveryPlaceIsAsked for a credential of the client's own, or it is known why not.
func TestEveryPlaceIsAsked(t *testing.T) {
	asked := map[reading.Place]bool{}
	for _, f := range (&presented{}).finders() {
		asked[f.place] = true
	}
	for _, place := range reading.Places() {
		if !asked[place] {
			t.Errorf("nobody looks for a credential in the place %q", place)
		}
	}
}
