package journal_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal/journaltest"
)

func TestMemoryJournal(t *testing.T) {
	t.Parallel()
	journaltest.TestJournal(t, func(*testing.T) (journal.Journal, func() journal.Journal) { return journal.NewMemory(), nil })
}

// TestMemoryIsPruned: the oldest events go, and the numbers go on.
func TestMemoryIsPruned(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	const written = journal.KeptEvents + journal.KeptEvents/10 + 1
	for range written {
		if _, err := j.Move(t.Context(), journal.Entry{}, journal.Event{To: journal.Running}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := j.Events(t.Context(), 0, written)
	if err != nil || len(events) != journal.KeptEvents || events[len(events)-1].Seq != written {
		t.Errorf("%d events, %v", len(events), err)
	}
}
