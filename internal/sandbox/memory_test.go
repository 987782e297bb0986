package sandbox_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/journaltest"
)

func TestMemoryJournal(t *testing.T) {
	t.Parallel()
	journaltest.TestJournal(t, func(*testing.T) (sandbox.Journal, func() sandbox.Journal) { return sandbox.NewMemory(), nil })
}

// TestMemoryIsPruned: the oldest events go, and the numbers go on.
func TestMemoryIsPruned(t *testing.T) {
	t.Parallel()
	j := sandbox.NewMemory()
	const written = sandbox.KeptEvents + sandbox.KeptEvents/10 + 1
	for range written {
		if _, err := j.Move(t.Context(), sandbox.Entry{}, sandbox.Event{To: sandbox.Running}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := j.Events(t.Context(), 0, written)
	if err != nil || len(events) != sandbox.KeptEvents || events[len(events)-1].Seq != written {
		t.Errorf("%d events, %v", len(events), err)
	}
}
