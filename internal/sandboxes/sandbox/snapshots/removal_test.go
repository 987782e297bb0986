package snapshots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestNobodyWaitsForARemoval: while the files of a removed snapshot go, which takes as long as they
// are large, others list, find and use theirs.
func TestNobodyWaitsForARemoval(t *testing.T) {
	const files = 80_000 // which take a moment to remove, as large ones do
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "one", "ann", "")
	make1(t, s, "two", "bob", "")
	if got := len(s.List()); got != 2 {
		t.Fatalf("the control: %d snapshots", got)
	}
	many := filepath.Join(dir, "one", "many")
	must(t, os.Mkdir(many, 0o700))
	for i := range files {
		must(t, os.Symlink("x", filepath.Join(many, fmt.Sprint(i))))
	}
	removed := make(chan error, 1)
	go func() {
		_, err := s.Remove("ann", "one")
		removed <- err
	}()
	gone := filepath.Join(dir, gonePrefix+"one", "many")
	for {
		if _, err := os.Lstat(gone); err == nil {
			break
		}
		select {
		case err := <-removed:
			t.Fatalf("the removal ended before anybody looked: %v", err)
		default:
			runtime.Gosched()
		}
	}
	_, err := s.Look("bob", "two")
	_, again := s.Begin("bob", "one", 0, true)
	s.mu.Lock()
	held := s.drafts["one"]
	s.mu.Unlock()
	_, still := os.Lstat(gone)
	must(t, err)
	if still != nil {
		t.Error("bob's snapshot was told of only when all of ann's files were gone")
	}
	if !errors.Is(again, fault.ErrConflict) || held.owner != "ann" || held.bytes == 0 {
		t.Errorf("while its files are there another has its id (%v), or their room (%v)", again, held)
	}
	must(t, <-removed)
	if d, err := s.Begin("bob", "one", 0, true); err != nil {
		t.Errorf("afterwards the id is still taken: %v", err)
	} else {
		must(t, d.Drop())
	}
}
