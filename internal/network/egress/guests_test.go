package egress

import (
	"fmt"
	"testing"
	"time"
)

// TestCountsThatNobodyTakesAreForgotten: of a sandbox that has ended, and whose count no log took, no more is kept than of others. The control
// is one that lives, of which the next record is to tell.
func TestCountsThatNobodyTakesAreForgotten(t *testing.T) {
	for _, ended := range []bool{true, false} {
		gs := newSandboxRates(Limits{}.withDefaults(), time.Now)
		const all = maxGuests + 100
		for i := range all {
			id := fmt.Sprintf("sb-%d", i)
			gs.countUnheard(id, 1)
			gs.crowdAgain(id, 0, true)
			if ended {
				gs.hurryGuest(id)
			}
		}
		want := map[bool]int{true: maxGuests, false: all}[ended]
		if kept := len(gs.byID); kept != want {
			t.Errorf("ended %t: %d are kept, not %d", ended, kept, want)
		}
	}
}
