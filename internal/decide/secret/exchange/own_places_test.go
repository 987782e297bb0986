package exchange

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// TestEveryPlaceIsAsked for a credential of the client's own, or it is known why not.
func TestEveryPlaceIsAsked(t *testing.T) {
	asked := map[requestparts.Place]bool{}
	for _, f := range (&presented{}).finders() {
		asked[f.place] = true
	}
	for _, place := range requestparts.Places() {
		if !asked[place] {
			t.Errorf("nobody looks for a credential in the place %q", place)
		}
	}
}
