package keeper

import (
	"fmt"
	"testing"
)

// TestTheKeeperKeepsNoCountOfNothing: of a sandbox that is forgotten while some of its streams still end, nothing is kept
// when they have; a count is, and what lives goes on. However many nobody asks for, they are bounded.
func TestTheKeeperKeepsNoCountOfNothing(t *testing.T) {
	s := NewServer(Config{Socket: "unused"})
	for _, counts := range []int64{0, 3} {
		id := fmt.Sprintf("counts-%d", counts)
		box := &sandbox{id: id, refusals: s.refusalsOf(id)}
		if err := s.add(box); err != nil {
			t.Fatal(err)
		}
		box.refusals.begin()
		s.remove(box)
		box.refusals.back(counts, false)
		box.refusals.end()
		if kept := s.refusals[id] != nil; kept != (counts > 0) {
			t.Errorf("of %d refused: kept is %v", counts, kept)
		}
	}
	living := &sandbox{id: "living", refusals: s.refusalsOf("living")}
	if err := s.add(living); err != nil {
		t.Fatal(err)
	}
	living.refusals.begin()
	living.refusals.back(1, false)
	for i := range 2 * maxLeftRefusals {
		box := &sandbox{id: fmt.Sprintf("left-%d", i)}
		box.refusals = s.refusalsOf(box.id)
		if err := s.add(box); err != nil {
			t.Fatal(err)
		}
		box.refusals.back(1, false)
		s.remove(box)
		if s.refusals[box.id] == nil {
			t.Fatalf("%s is given up before anybody could ask", box.id)
		}
	}
	if left := len(s.refusals); left > maxLeftRefusals+1 || s.refusals["living"] == nil {
		t.Errorf("%d are left, and of what lives %v", left, s.refusals["living"])
	}
}
