package scanning

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// TestEveryPlaceHasAStep: a place that is added to the list is looked at, or nothing leaves.
func TestEveryPlaceHasAStep(t *testing.T) {
	steps := (&look{}).stepsByPlace()
	for _, place := range requestparts.Places() {
		if steps[place] == nil {
			t.Errorf("nothing looks at the place %q", place)
		}
		delete(steps, place)
	}
	if len(steps) > 0 {
		t.Errorf("there are steps for places that there are not: %v", steps)
	}
}
