package fairqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
)

// take takes a turn in the background; got tells whether it was given.
func take(ctx context.Context, s *fairqueue.Shares) (got func() string, release func()) {
	given := make(chan string, 1)
	back := make(chan func(), 1)
	go func() {
		guest, release, err := s.Take(ctx)
		if err != nil {
			given <- "error: " + err.Error()
			return
		}
		given <- guest
		back <- release
	}()
	return func() string {
		synctest.Wait()
		select {
		case g := <-given:
			return g
		default:
			return "waits"
		}
	}, func() { (<-back)() }
}

// TestOneGuestCannotTakeAll: what one guest holds and waits for keeps no other
// from its turn.
func TestOneGuestCannotTakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fairqueue.New(fairqueue.Limits{All: 4, Each: 3, Sure: 1, Most: 6})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bad := fairqueue.For(ctx, "bad")
		var releases []func()
		for i := range 20 {
			got, release := take(bad, s)
			if want := map[bool]string{true: "bad", false: "waits"}[i < 3]; got() != want {
				t.Fatalf("turn %d of one guest: want %s", i, want)
			}
			releases = append(releases, release)
		}
		for i, guest := range []string{"a", "b", "c", "d"} {
			got, _ := take(fairqueue.For(ctx, guest), s)
			if want := map[bool]string{true: guest, false: "waits"}[i < 3]; got() != want {
				t.Errorf("guest %s: want %s", guest, want) // one within All, two that are sure, then it is over
			}
		}
		releases[0]()
		got, _ := take(bad, s)
		if got() != "waits" {
			t.Error("who has the most came next")
		}
	})
}

// TestWhoHasTheFewestIsNext, however long the others have waited.
func TestWhoHasTheFewestIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fairqueue.New(fairqueue.Limits{All: 2, Each: 2})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first, release := take(fairqueue.For(ctx, "bad"), s)
		second, _ := take(fairqueue.For(ctx, "bad"), s)
		if first() != "bad" || second() != "bad" {
			t.Fatal("no turns")
		}
		third, _ := take(fairqueue.For(ctx, "bad"), s)
		synctest.Wait()
		good, _ := take(fairqueue.For(ctx, "good"), s)
		synctest.Wait()
		release()
		if got := good(); got != "good" {
			t.Errorf("the good one: %s", got)
		}
		if got := third(); got != "waits" {
			t.Errorf("the other: %s", got)
		}
	})
}

// TestWhoJoinsBringsTheirShare: what a guest waits for with others is not held
// up by their having used up theirs, through what is done in turn for it.
func TestWhoJoinsBringsTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fairqueue.New(fairqueue.Limits{All: 8, Each: 1})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bad := fairqueue.For(ctx, "bad")
		if got, _ := take(bad, s); got() != "bad" {
			t.Fatal("no turn")
		}
		outer, inner := &fairqueue.Party{}, &fairqueue.Party{}
		outer.Join(bad)
		inner.Join(fairqueue.With(ctx, outer))
		got, _ := take(fairqueue.With(ctx, inner), s)
		if g := got(); g != "waits" {
			t.Fatalf("beyond its share: %s", g)
		}
		outer.Join(fairqueue.For(ctx, "good"))
		if g := got(); g != "good" {
			t.Errorf("after another joined: %s", g)
		}
	})
}

// TestWhoLeavesHoldsNothing.
func TestWhoLeavesHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fairqueue.New(fairqueue.Limits{All: 1, Each: 1})
		_, release, err := s.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got, _ := take(ctx, s)
		if g := got(); g != "waits" {
			t.Fatal(g)
		}
		cancel()
		if g := got(); g != "error: "+context.Canceled.Error() {
			t.Fatal(g)
		}
		release()
		release() // only the first counts
		for range 2 {
			guest, release, err := s.Take(fairqueue.For(t.Context(), "a"))
			if err != nil || guest != "a" {
				t.Fatal(guest, err)
			}
			release()
		}
		over, stop := context.WithCancel(t.Context())
		stop()
		for range 50 { // whichever is seen first, nothing is kept
			if _, release, err := s.Take(over); err == nil {
				release()
			} else if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if _, release, err := s.Take(t.Context()); err != nil {
			t.Fatal(err)
		} else {
			release()
		}
	})
}
