package sandbox

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestTurns: who finds all turns of its owner taken waits for half a minute, and is
// told when to come again; another owner's comes in at once.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(dir, 1)
		var leave func()
		for range g.turns.Limits().Each {
			var err error
			if leave, err = g.enterGate(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		time.AfterFunc(createTimeout-time.Second, leave)
		late, err := g.enterGate(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := g.enterGate(t.Context(), "a"); !errors.Is(err, fault.ErrExhausted) || fault.RetryAfter(err) <= 0 || time.Since(began) != createTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		began = time.Now()
		if _, err := g.enterGate(t.Context(), "b"); err != nil || time.Since(began) > 0 {
			t.Errorf("another owner waited for %s: %v", time.Since(began), err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enterGate(gone, "a"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		late()
		if _, err := g.enterGate(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestDescriptors: what is open is counted (C-CF-08).
func TestDescriptors(t *testing.T) {
	before, most, err := descriptors()
	if err != nil || before < 3 || most < before {
		t.Fatal(before, most, err)
	}
	const more = 500
	for range more {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	after, _, err := descriptors()
	if err != nil || after < before+more/2 { // other tests close some meanwhile
		t.Errorf("%d were open, then %d (%v)", before, after, err)
	}
}

// TestPausesGrow between tries to take a sandbox away, up to five minutes.
func TestPausesGrow(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: retryMost, 1000: retryMost} {
		if got := retryAfter(0, failures); got != want {
			t.Errorf("after %d failures the pause is %s, want %s", failures, got, want)
		}
	}
}
