package sandbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestNamesThatAreRefusedAreNotOnRecord: the log does not say that a snapshot is called something which it was
// refused to be called, or says that this did not come to be.
func TestNamesThatAreRefusedAreNotOnRecord(t *testing.T) {
	s := newStudio(t)
	source := s.create(s.request(house)).Info()
	snap, err := s.Snapshot(t.Context(), source.ID, "base", "")
	must(t, err)
	events := func() (said []audit.Record) {
		for r, err := range s.log.Records(t.Context(), audit.Filter{}) {
			must(t, err)
			if r.Detail["snapshot"] == snap.ID && r.Kind == audit.KindDaemon {
				said = append(said, r)
			}
		}
		return said
	}
	_, err = s.NameSnapshot(t.Context(), "", snap.ID, []string{"control"})
	must(t, err)
	if len(events()) != 1 {
		t.Fatalf("%+v", events())
	}
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("base:v%d", i))
	}
	if _, err := s.NameSnapshot(t.Context(), "", snap.ID, names); !errors.Is(err, fault.ErrExhausted) {
		t.Fatalf("%v", err)
	}
	if said := events(); len(said) != 1 {
		t.Errorf("100 names were refused, and the log has %s %.80s", said[1].Outcome, said[1].Reason)
	}
}

// TestASnapshotThatStaysIsNotOnRecordAsRemoved: so with a snapshot that is not removed, because a sandbox is
// being made from it.
func TestASnapshotThatStaysIsNotOnRecordAsRemoved(t *testing.T) {
	s := newStudio(t)
	snap, err := s.Snapshot(t.Context(), s.create(s.request(house)).Info().ID, "base", "")
	must(t, err)
	removals := func() (said []audit.Outcome) {
		for r, err := range s.log.Records(t.Context(), audit.Filter{}) {
			must(t, err)
			if r.Detail["snapshot"] == snap.ID && r.Detail[audit.DetailEvent] == "snapshot_removed" {
				said = append(said, r.Outcome)
			}
		}
		return said
	}
	lease, err := s.LeaseSnapshot(t.Context(), snap.ID)
	must(t, err)
	if err := s.RemoveSnapshot(t.Context(), "", snap.ID); !errors.Is(err, fault.ErrConflict) {
		t.Fatal(err)
	}
	if got := removals(); len(got) != 0 {
		t.Errorf("a snapshot that stays is on record as %v", got)
	}
	lease.Release()
	must(t, s.RemoveSnapshot(t.Context(), "", snap.ID)) // the control
	if got := removals(); !slices.Equal(got, []audit.Outcome{audit.Started}) {
		t.Errorf("one that is removed is on record as %v", got)
	}
}
