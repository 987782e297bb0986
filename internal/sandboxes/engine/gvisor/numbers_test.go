package gvisor_test

import (
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// TestNumbersThatComeAgain: sandboxes whose processes have the numbers of earlier
// ones live.
func TestNumbersThatComeAgain(t *testing.T) {
	if processtest.Inside(t) {
		numbersComeAgain(t, 6, 1)
	}
}

// numbersComeAgain creates sandboxes, of which each few begin with the same number.
func numbersComeAgain(t *testing.T, creates, each int) {
	t.Helper()
	subject := newSite(t).subject(t, engine.RootImage)
	seen, again := map[int]bool{}, 0
	for i := 0; i < creates || again == 0 && i < 5*creates; i++ {
		if i%each == 0 {
			if err := processtest.SetLast(5000); err != nil {
				t.Fatal(err)
			}
		}
		pids := runOnce(t, subject, fmt.Sprintf("again-%d", i))
		for _, pid := range pids {
			if seen[pid] {
				again++
			}
			seen[pid] = true
		}
		if t.Failed() {
			t.Fatalf("at the create %d of %d", i+1, creates)
		}
	}
	t.Logf("%d numbers came again", again)
	if again == 0 {
		t.Errorf("no number came again in %d creates, so that nothing is proved", creates)
	}
}

// runOnce creates a sandbox, asks its guest something and destroys it.
func runOnce(t *testing.T, subject *enginetest.Subject, id string) []int {
	t.Helper()
	inst, err := subject.Engine.Create(t.Context(), subject.Spec(id))
	if err != nil {
		t.Fatal(err)
	}
	known, err := subject.Keeper.Get(t.Context(), id)
	if err != nil || !known.Alive || len(known.Pids) != 2 || known.Exit != nil {
		t.Errorf("%s: %+v, %v", id, known, err)
	}
	if _, err := subject.Keeper.Call(t.Context(), id, channel.Call{Kind: channel.CallPing}); err != nil {
		t.Errorf("%s: ping: %v", id, err)
	}
	if err := inst.Destroy(t.Context()); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	if left := subject.Traces(id); len(left) > 0 {
		t.Errorf("%s left %v", id, left)
	}
	return known.Pids
}
