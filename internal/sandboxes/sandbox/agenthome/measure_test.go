package agenthome

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk/treewalktest"
)

// TestOverDespiteErrors: an error, which a sandbox may bring about, is no way around the bound.
func TestOverDespiteErrors(t *testing.T) {
	t.Parallel()
	s := NewShelf(t.TempDir())
	s.measure = func(context.Context, string) (Kept, error) { return Kept{Bytes: 2 << 20}, errors.New("made up") }
	if err := s.Take(Home{UID: 1, Name: "work"}, "sb-1"); err != nil {
		t.Fatal(err)
	}
	if over := s.Over(t.Context(), func(string) Limit { return Limit{Bytes: 1 << 20} }); over["sb-1"].Name != "work" {
		t.Errorf("%v", over)
	}
	if over := s.Over(t.Context(), func(string) Limit { return Limit{Bytes: 4 << 20} }); len(over) > 0 { // the control
		t.Errorf("%v", over)
	}
}

// TestRemoveUnderAnyName: nothing of a home is left, whatever is in the name of where it lies.
func TestRemoveUnderAnyName(t *testing.T) {
	t.Parallel()
	s := NewShelf(filepath.Join(t.TempDir(), "state [1]*"))
	w := wanted("work", ".claude")
	if _, err := s.Mounts(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(w.Home); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.pathOf(Home{UID: w.UID}))
	if err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if !strings.Contains(s.dir, "[") {
		t.Error("the name is an ordinary one")
	}
}

// TestMeasureWaitsForNoPipe: a sandbox that has a home puts named pipes in its directories' places while it is measured. One that
// the measure waited for would keep all homes from being measured.
func TestMeasureWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	s := NewShelf(t.TempDir())
	w := wanted("work", ".claude")
	shown, err := s.Mounts(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Take(w.Home, "sb-1"); err != nil {
		t.Fatal(err)
	}
	stop := treewalktest.Exchange(t, shown[0].Source)
	for range 200 {
		if over := s.Over(t.Context(), func(string) Limit { return Limit{Bytes: 1 << 40} }); len(over) > 0 {
			t.Fatalf("%v", over)
		}
	}
	stop()
	all, err := s.List(t.Context(), w.UID)
	if err != nil || len(all) != 1 || all[0].Entries < 202 { // the control: they are looked at
		t.Errorf("%+v, %v", all, err)
	}
}
