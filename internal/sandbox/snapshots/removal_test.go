package snapshots

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
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
	_, still := os.Lstat(gone)
	must(t, err)
	if still != nil {
		t.Error("bob's snapshot was told of only when all of ann's files were gone")
	}
	must(t, <-removed)
}
