package httpapi

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestTaking: of two tokens that ask for one run at the same time, one gets it; once
// nothing is being made for it any more it is free again.
func TestTaking(t *testing.T) {
	var runs taking
	var got atomic.Int32
	var group sync.WaitGroup
	for _, token := range []string{"a", "b", "c", "d"} {
		group.Go(func() {
			if _, ok := runs.take("run", token); ok {
				got.Add(1)
			}
		})
	}
	group.Wait()
	if got.Load() != 1 {
		t.Errorf("%d tokens got one run", got.Load())
	}
	runs = taking{}
	first, _ := runs.take("run", "a")
	second, ok := runs.take("run", "a")
	if !ok {
		t.Error("a token does not get its own run twice")
	}
	if _, ok := runs.take("another", "b"); !ok {
		t.Error("a run keeps another from being taken")
	}
	first()
	if _, ok := runs.take("run", "b"); ok {
		t.Error("a run is free before all is made")
	}
	second()
	if _, ok := runs.take("run", "b"); !ok {
		t.Error("a run is never free again")
	}
}
