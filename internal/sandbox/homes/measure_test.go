package homes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOverDespiteErrors: an error, which a sandbox may bring about, is no way around the bound.
func TestOverDespiteErrors(t *testing.T) {
	t.Parallel()
	s := NewShelf(t.TempDir())
	s.measure = func(string) (Kept, error) { return Kept{Bytes: 2 << 20}, errors.New("made up") }
	if err := s.Take(Home{UID: 1, Name: "work"}, "sb-1"); err != nil {
		t.Fatal(err)
	}
	if over := s.Over(func(string) int64 { return 1 << 20 }); over["sb-1"].Name != "work" {
		t.Errorf("%v", over)
	}
	if over := s.Over(func(string) int64 { return 4 << 20 }); len(over) > 0 { // the control
		t.Errorf("%v", over)
	}
}

// TestRemoveUnderAnyName: nothing of a home is left, whatever is in the name of where it lies.
func TestRemoveUnderAnyName(t *testing.T) {
	t.Parallel()
	s := NewShelf(filepath.Join(t.TempDir(), "state [1]*"))
	w := wanted("work", ".claude")
	if _, err := s.Mounts(w); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(w.Home); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.path(Home{UID: w.UID}))
	if err != nil || len(entries) > 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
	if !strings.Contains(s.dir, "[") {
		t.Error("the name is an ordinary one")
	}
}
