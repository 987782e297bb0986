package debian

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestOwnersTakeTurnsToRunApt: whoever has asked for much waits behind one who asks for the first time.
func TestOwnersTakeTurnsToRunApt(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		leave, err := a.awaitTurn(t.Context(), "mallory")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // guards order
		var order []string
		var all sync.WaitGroup
		for _, owner := range []string{"mallory", "mallory", "mallory", "bob"} {
			all.Go(func() {
				leave, err := a.awaitTurn(t.Context(), owner)
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				mu.Lock()
				defer mu.Unlock()
				order = append(order, owner)
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		if want := []string{"bob", "mallory", "mallory", "mallory"}; !slices.Equal(order, want) {
			t.Errorf("turns were taken by %v", order)
		}
	})
}
