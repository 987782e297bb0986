package fairqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
)

// want takes an amount in the background; got tells whether it was given.
func want(ctx context.Context, a *fairqueue.Amounts, n int64) (got func() bool, release func()) {
	given := make(chan func(), 1)
	go func() {
		if release, err := a.Take(ctx, n); err == nil {
			given <- release
		}
	}()
	var back func()
	got = func() bool {
		synctest.Wait()
		select {
		case back = <-given:
		default:
		}
		return back != nil
	}
	return got, func() { back() }
}

// TestAmountsHaveShares: what one guest has and waits for keeps no other from what is sure, each
// guest is served in its order, and who leaves holds nothing and nobody up.
func TestAmountsHaveShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fairqueue.NewAmounts(fairqueue.AmountLimits{All: 100, Each: 75, Sure: 20, Most: 200})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bad, good := fairqueue.For(ctx, "bad"), fairqueue.For(ctx, "good")
		first, release := want(bad, a, 70)
		if !first() {
			t.Fatal("the first waits")
		}
		leaving, leave := context.WithCancel(bad)
		second, _ := want(leaving, a, 70)
		if second() {
			t.Error("more than its share")
		}
		third, _ := want(bad, a, 5)
		if third() {
			t.Error("it came before what the same guest wanted earlier")
		}
		one, _ := want(good, a, 10)
		two, _ := want(good, a, 10)
		if !one() || !two() {
			t.Error("another guest waits for what is there")
		}
		large, _ := want(fairqueue.For(ctx, "large"), a, 50)
		if large() {
			t.Error("more than there is")
		}
		small, _ := want(fairqueue.For(ctx, "small"), a, 25)
		if small() {
			t.Error("it passed one that waits for more")
		}
		leave()
		if !third() {
			t.Error("behind one that has left")
		}
		sure, _ := want(fairqueue.For(ctx, "sure"), a, 20)
		if !sure() {
			t.Error("what is sure waits")
		}
		release()
		if !large() || small() {
			t.Errorf("in their order: large %t, small %t", large(), small())
		}
	})
}

// TestMoreThanAGuestMayHave takes all of that, and all is given back.
func TestMoreThanAGuestMayHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := fairqueue.NewAmounts(fairqueue.AmountLimits{All: 100, Each: 75})
		for range 3 {
			got, release := want(fairqueue.For(t.Context(), "a"), a, 1_000)
			if !got() {
				t.Fatal("it waits")
			}
			other, _ := want(fairqueue.For(t.Context(), "b"), a, 25)
			if !other() {
				t.Error("another waits")
			}
			release()
			ctx, cancel := context.WithCancel(t.Context())
			full, giveBack := want(fairqueue.For(ctx, "a"), a, 75)
			if !full() {
				t.Error("it was not given back")
			}
			giveBack()
			cancel()
			a = fairqueue.NewAmounts(fairqueue.AmountLimits{All: 100, Each: 75})
		}
	})
}
