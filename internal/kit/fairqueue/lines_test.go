package fairqueue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// holder takes turns in the background and says who has one.
type holder struct {
	t      *testing.T
	shares *Shares
	mu     sync.Mutex
	got    []string // guests, in the order in which they had a turn
	leave  map[string][]func()
}

func newHolder(t *testing.T, shares *Shares) *holder {
	t.Helper()
	return &holder{t: t, shares: shares, leave: map[string][]func(){}}
}

func (h *holder) ask(ctx context.Context, guest string) {
	go func() {
		_, leave, err := h.shares.Take(For(ctx, guest))
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, guest)
		h.leave[guest] = append(h.leave[guest], leave)
	}()
	synctest.Wait()
}

// end gives back a guest's oldest turn.
func (h *holder) end(guest string) {
	h.t.Helper()
	h.mu.Lock()
	if len(h.leave[guest]) == 0 {
		h.mu.Unlock()
		h.t.Fatalf("%s has no turn", guest)
	}
	leave := h.leave[guest][0]
	h.leave[guest] = h.leave[guest][1:]
	h.mu.Unlock()
	leave()
	leave() // once is enough
	synctest.Wait()
}

func (h *holder) want(guests ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.got, guests) {
		h.t.Errorf("turns were given to %v, want %v", h.got, guests)
	}
	h.got = nil
}

// empty fails the test if anything is kept of who has left.
func (h *holder) empty() {
	h.t.Helper()
	s := h.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all != 0 || len(s.had) != 0 || len(s.last) != 0 || len(s.ones) != 0 || len(s.alone) != 0 || len(s.parties) != 0 {
		h.t.Errorf("%d turns are taken, %v have some, %v are kept, %d wait", s.all, s.had, s.last, len(s.alone)+len(s.parties))
	}
}

// TestAnOwnersManyWaitForTheirOwnTurns: one owner never has all turns, and one who
// comes late with little is next.
func TestAnOwnersManyWaitForTheirOwnTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHolder(t, New(Fair(4, 100)))
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			h.ask(ctx, "a")
		}
		h.want("a", "a", "a")
		h.ask(ctx, "b")
		h.want("b") // the turn that a can't have
		for range 2 {
			h.ask(ctx, "b")
			h.ask(ctx, "c")
		}
		h.want()
		h.end("a") // three wait in turn: c has none yet
		h.want("c")
		h.end("a")
		h.want("a") // each has one turn now, and a's last was given before b's and c's
		h.end("a")
		h.want("b")
		cancel() // who waits goes away
		synctest.Wait()
		for _, guest := range []string{"a", "b", "b", "c"} {
			h.end(guest)
		}
		h.empty()
	})
}

// TestWhoWasGivenOneTheLongestAgoIsNext: of guests with as many turns, those who came with
// many first do not go first until they are done.
func TestWhoWasGivenOneTheLongestAgoIsNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHolder(t, New(Limits{All: 1, Each: 1}))
		for range 4 {
			h.ask(t.Context(), "a")
		}
		h.ask(t.Context(), "b")
		h.ask(t.Context(), "b")
		h.want("a")
		for _, next := range []struct{ ends, gets string }{{"a", "b"}, {"b", "a"}, {"a", "b"}, {"b", "a"}, {"a", "a"}} {
			h.end(next.ends)
			h.want(next.gets)
		}
		h.end("a")
		h.empty()
	})
}

// TestMembersOfAGuestTakeTurns: of one owner's sandboxes each has its turns, however many another waits for; and the
// owner has no more for having many.
func TestMembersOfAGuestTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Limits{All: 2, Each: 1})
		var got []string
		var mu sync.Mutex
		leave := map[string]func(){}
		ctx, cancel := context.WithCancel(t.Context())
		ask := func(guest, member string) {
			go func() {
				_, done, err := s.Take(Within(ctx, guest, member))
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				got, leave[guest] = append(got, guest+member), done
			}()
			synctest.Wait()
		}
		for range 4 {
			ask("a", "1")
		}
		for _, member := range []string{"2", "2", "3"} {
			ask("a", member)
		}
		ask("b", "1")
		for range 6 {
			leave["a"]()
			synctest.Wait()
		}
		if want := []string{"a1", "b1", "a2", "a3", "a1", "a2", "a1", "a1"}; !slices.Equal(got, want) {
			t.Errorf("turns were given to %v, want %v", got, want)
		}
		ask("a", "2")
		ask("a", "1")
		leave["a"]()
		synctest.Wait()
		cancel() // who waits goes away, and had a turn before
		synctest.Wait()
		leave["a"]()
		leave["b"]()
		newHolder(t, s).empty()
	})
}

// TestNobodyIsPassedForEver: who waits has a turn though others, of the same guest or guests themselves, ask again
// and again, each for one at a time.
func TestNobodyIsPassedForEver(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]func(ctx context.Context, who string) context.Context{
		"guests":  For,
		"members": func(ctx context.Context, who string) context.Context { return Within(ctx, "owner", who) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := New(Limits{All: 1, Each: 1})
				var got []string
				turn := make(chan func())
				ask := func(who string) {
					go func() {
						_, leave, err := s.Take(as(t.Context(), who))
						if err != nil {
							t.Error(err)
							return
						}
						got = append(got, who) // one at a time has the turn
						turn <- leave
					}()
					synctest.Wait()
				}
				for _, who := range []string{"many", "many", "one", "other"} {
					ask(who)
				}
				(<-turn)()
				synctest.Wait()
				for range 6 {
					again := got[len(got)-1]
					(<-turn)()
					synctest.Wait()
					ask(again)
				}
				if !slices.Contains(got[1:], "many") {
					t.Errorf("turns were given to %v, and many waits for ever", got)
				}
				for s.Held() > 0 {
					(<-turn)()
					synctest.Wait()
				}
			})
		})
	}
}

// TestAMemberLeavesAPartOfTheLine: one sandbox of an owner that asks for more than there are places does not keep the
// others of that owner out.
func TestAMemberLeavesAPartOfTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Fair(2, 8))
		ctx, cancel := context.WithCancel(t.Context())
		crowded := map[string]int{}
		var mu sync.Mutex
		ask := func(member string) {
			go func() {
				if _, _, err := s.Take(Within(ctx, "owner", member)); errors.Is(err, ErrCrowded) {
					mu.Lock()
					defer mu.Unlock()
					crowded[member]++
				}
			}()
			synctest.Wait()
		}
		for range 10 { // one has the turn
			ask("many")
		}
		for range 3 {
			ask("few")
		}
		if crowded["many"] != 3 || crowded["few"] != 1 {
			t.Errorf("the line was full for %v", crowded)
		}
		cancel()
		synctest.Wait()
	})
}

// TestLines: a line has an end, and who leaves it leaves no hole.
func TestLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shares := New(Fair(1, 2))
		h := newHolder(t, shares)
		gone, leave := context.WithCancel(t.Context())
		h.ask(t.Context(), "a")
		h.ask(gone, "a")
		h.ask(t.Context(), "a")
		if _, _, err := shares.Take(For(t.Context(), "a")); !errors.Is(err, ErrCrowded) {
			t.Errorf("a third waits in a line of two: %v", err)
		}
		leave()
		synctest.Wait()
		if _, _, err := shares.Take(For(gone, "b")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		h.want("a")
		h.end("a")
		h.want("a")
		h.end("a")
		h.empty()
	})
}

// TestNoTurnIsLost when waiters leave in the moment in which they are served.
func TestNoTurnIsLost(t *testing.T) {
	t.Parallel()
	shares := New(Fair(2, 1000))
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 0 {
				go cancel()
			}
			if _, leave, err := shares.Take(For(ctx, string(rune('a'+i%7)))); err == nil {
				leave()
			}
		})
	}
	all.Wait()
	newHolder(t, shares).empty()
}

// TestALongLineIsNotLookedThrough: however many wait for one guest, a turn is looked for among as many
// as there are guests.
func TestALongLineIsNotLookedThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHolder(t, New(Limits{All: 2, Each: 1}))
		ctx, cancel := context.WithCancel(t.Context())
		for range 500 {
			h.ask(ctx, "a")
		}
		h.ask(t.Context(), "b")
		h.ask(t.Context(), "b")
		h.want("a", "b")
		h.shares.mu.Lock()
		if len(h.shares.alone) != 2 || length(h.shares.alone["a"]) != 499 || len(h.shares.parties) != 0 {
			t.Errorf("%d guests wait, and %d parties", len(h.shares.alone), len(h.shares.parties))
		}
		h.shares.mu.Unlock()
		cancel()
		synctest.Wait()
		h.end("b")
		h.want("b")
		h.end("a")
		h.end("b")
		h.empty()
	})
}
