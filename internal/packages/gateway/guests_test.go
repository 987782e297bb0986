package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestBurstsWait: a large project's files are asked for in one go, so what is
// above the rate waits for its turn; what is far above it is refused.
func TestBurstsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gs := newGuestRates(Limits{Requests: 200}.withDefaults())
		began := time.Now()
		for i := range 1400 { // twice the rate at once, and five seconds' worth of turns
			if turn, ok := gs.queueRequest("sb"); !ok || (turn == 0) != (i < 400) {
				t.Fatalf("request %d: %v %v", i, turn, ok)
			}
		}
		if gs.admitRequest(t.Context(), "sb") {
			t.Error("a request was admitted whose turn is more than five seconds away")
		}
		if !gs.admitRequest(t.Context(), "another") || time.Since(began) != 0 {
			t.Error("a guest waits for another")
		}
		time.Sleep(time.Second) // of the bubble
		if began := time.Now(); !gs.admitRequest(t.Context(), "sb") || time.Since(began) == 0 {
			t.Errorf("a request did not wait for its turn: %v", time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if gs.admitRequest(gone, "sb") {
			t.Error("a request was admitted whose client went away")
		}
	})
}
