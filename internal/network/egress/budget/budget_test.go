package budget_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
)

// TestTakenIsNeverMore: whatever many take and give back at a time, no more is taken than
// there is, and in the end nothing is.
func TestTakenIsNeverMore(t *testing.T) {
	t.Parallel()
	const most = 100
	b := budget.New(most, time.Minute)
	var all sync.WaitGroup
	for n := range int64(20) {
		all.Go(func() {
			for range 200 {
				if err := b.Await(t.Context(), n+1); err != nil {
					t.Error(err)
					return
				}
				if used := b.Used(); used > most || used < n+1 {
					t.Errorf("%d bytes are taken", used)
				}
				b.Give(n + 1)
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes are left", b.Used())
	}
}

// TestWhoWaits: for what there will never be nobody waits; for what is not given back only so
// long; and what is owed counts.
func TestWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100, 10*time.Second)
		began := time.Now()
		if err := b.Await(t.Context(), 101); !errors.Is(err, budget.ErrFull) || time.Since(began) != 0 {
			t.Errorf("more than there is: %v after %v", err, time.Since(began))
		}
		if !b.Take(60) || b.Take(41) {
			t.Error("60 and 41 of 100")
		}
		if err := b.Await(t.Context(), 41); !errors.Is(err, budget.ErrFull) || time.Since(began) != 10*time.Second {
			t.Errorf("what is not given back: %v after %v", err, time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Await(gone, 41); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone: %v", err)
		}
		go func() {
			time.Sleep(5 * time.Second) // of the bubble
			b.Give(60)
		}()
		if err := b.Await(t.Context(), 100); err != nil {
			t.Errorf("what is given back: %v", err)
		}
		b.Owe(50)
		b.Give(100)
		if b.Take(51) || !b.Take(50) {
			t.Error("what is owed does not count")
		}
	})
}

// TestWhoWaitsIsServedInOrder: one that waits for much is not passed by those who came later and wait
// for little, and one that gives up holds nobody up.
func TestWhoWaitsIsServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100, time.Hour)
		b.Owe(90)
		gone, leave := context.WithCancel(t.Context())
		served := make(chan string, 10)
		wait := func(ctx context.Context, name string, bytes int64) {
			go func() {
				if b.Await(ctx, bytes) == nil {
					served <- name
				}
			}()
			synctest.Wait()
		}
		wait(gone, "leaves", 95)
		wait(t.Context(), "much", 50)
		wait(t.Context(), "little", 5)
		if len(served) != 0 {
			t.Errorf("%s came before who waits for longer", <-served)
		}
		if !b.Take(3) {
			t.Error("who does not wait was kept from what is there")
		}
		b.Give(3)
		leave()
		synctest.Wait()
		if len(served) != 0 {
			t.Errorf("%s came before who waits for longer", <-served)
		}
		b.Give(60)
		synctest.Wait()
		if first, second := <-served, <-served; len(first) != 4 && len(second) != 4 || b.Used() != 85 {
			t.Errorf("%s and %s, %d bytes", first, second, b.Used())
		}
	})
}

// TestWhoWaitsLeavesSomeToSpare: however many wait, there is room for what is taken without
// waiting; one that needs nearly all has it once the rest is given back.
func TestWhoWaitsLeavesSomeToSpare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(160, time.Second)
		given := 0
		for range 20 {
			if b.Await(t.Context(), 10) == nil {
				given++
			}
		}
		if given != 14 || !b.Take(20) || b.Take(1) {
			t.Errorf("%d of 10 bytes were given, %d bytes are taken", given, b.Used())
		}
		b.Give(160)
		if err := b.Await(t.Context(), 160); err != nil {
			t.Errorf("all of it: %v", err)
		}
	})
}
