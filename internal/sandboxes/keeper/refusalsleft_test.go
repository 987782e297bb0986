package keeper

import (
	"fmt"
	"runtime"
	"testing"
)

// TestTheKeeperKeepsNoCountOfNothing: of a sandbox that is forgotten while some of its streams still end, nothing is kept
// when they have; a count is, and what lives goes on. However many nobody asks for, they are bounded.
func TestTheKeeperKeepsNoCountOfNothing(t *testing.T) {
	s := NewServer(Config{Socket: "unused"})
	for _, counts := range []int64{0, 3} {
		id := fmt.Sprintf("counts-%d", counts)
		box := &sandbox{id: id}
		if err := s.addSandbox(box); err != nil {
			t.Fatal(err)
		}
		box.refusals.beginCount()
		s.removeSandbox(box)
		box.refusals.countBack(counts, false)
		box.refusals.endCount()
		if kept := s.refusals[id] != nil; kept != (counts > 0) {
			t.Errorf("of %d refused: kept is %v", counts, kept)
		}
	}
	living := &sandbox{id: "living"}
	if err := s.addSandbox(living); err != nil {
		t.Fatal(err)
	}
	living.refusals.beginCount()
	living.refusals.countBack(1, false)
	for i := range 2 * maxLeftRefusals {
		box := &sandbox{id: fmt.Sprintf("left-%d", i)}
		if err := s.addSandbox(box); err != nil {
			t.Fatal(err)
		}
		box.refusals.countBack(1, false)
		s.removeSandbox(box)
		if s.refusals[box.id] == nil {
			t.Fatalf("%s is given up before anybody could ask", box.id)
		}
	}
	if left := len(s.refusals); left > maxLeftRefusals+1 || s.refusals["living"] == nil {
		t.Errorf("%d are left, and of what lives %v", left, s.refusals["living"])
	}
}

// TestAThawThatComesTooLateKeepsNoCount: of a sandbox that was killed and forgotten while it was being started anew nothing is left but
// what somebody still asks for, and then nothing.
func TestAThawThatComesTooLateKeepsNoCount(t *testing.T) {
	for _, counts := range []int64{0, 3} {
		s := NewServer(Config{Socket: "unused"})
		box := &sandbox{id: "box"}
		if err := s.addSandbox(box); err != nil {
			t.Fatal(err)
		}
		box.refusals.countBack(counts, false)
		s.removeSandbox(box)
		if err := s.thawFresh(box, &Launch{ID: box.id, Fresh: true, Argv: []string{"/no/such/program"}}); err == nil {
			t.Fatal("what is gone was started anew")
		}
		if kept := s.refusals[box.id] != nil; kept != (counts > 0) {
			t.Errorf("of %d refused: kept is %v", counts, kept)
		}
		box.refusals.takeUntold()
		if s.dropRefusals(box.id); len(s.refusals) > 0 {
			t.Errorf("of %d refused, which somebody has taken, something is kept", counts)
		}
	}
}

// TestASandboxUnderAnIDThatIsForgottenKeepsItsCount: one may become known as the keeper forgets another of its id; what it is refused is found.
func TestASandboxUnderAnIDThatIsForgottenKeepsItsCount(t *testing.T) {
	s := NewServer(Config{Socket: "unused"})
	last := &sandbox{id: "box"}
	if err := s.addSandbox(last); err != nil {
		t.Fatal(err)
	}
	for round := range 20_000 {
		forgotten, next := make(chan struct{}), &sandbox{id: last.id}
		go func(box *sandbox) {
			defer close(forgotten)
			s.removeSandbox(box)
		}(last)
		for s.addSandbox(next) != nil { // until its id is free
			runtime.Gosched()
		}
		<-forgotten
		s.mu.Lock()
		kept := s.refusals[next.id]
		s.mu.Unlock()
		if kept != next.refusals || kept.over {
			t.Fatalf("round %d: the keeper has %p, and the sandbox %p", round, kept, next.refusals)
		}
		last = next
	}
}
