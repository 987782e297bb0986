package requests

import "testing"

// TestAPlaceThatComesTooLateIsGivenBack: of a request that has ended nobody gives one back later.
func TestAPlaceThatComesTooLateIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		places := make(chan struct{}, 1)
		places <- struct{}{} // as TakePlace does
		p := &bodyPlace{ended: ended}
		if p.takePlace(places); p.hasPlace() == ended || len(places) == 1 == ended {
			t.Errorf("ended %t: it has a place: %t, and %d are taken", ended, p.hasPlace(), len(places))
		}
	}
}
