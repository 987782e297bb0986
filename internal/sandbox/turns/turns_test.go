package turns

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
	t     *testing.T
	table *Table
	mu    sync.Mutex
	got   []string // owners, in the order in which they had a turn
	leave map[string][]func()
}

func newHolder(t *testing.T, table *Table) *holder {
	t.Helper()
	return &holder{t: t, table: table, leave: map[string][]func(){}}
}

func (h *holder) ask(ctx context.Context, owner string) {
	go func() {
		leave, crowded, err := h.table.Take(ctx, owner)
		if err != nil || crowded {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, owner)
		h.leave[owner] = append(h.leave[owner], leave)
	}()
	synctest.Wait()
}

// end gives back an owner's oldest turn.
func (h *holder) end(owner string) {
	h.t.Helper()
	h.mu.Lock()
	if len(h.leave[owner]) == 0 {
		h.mu.Unlock()
		h.t.Fatalf("%s has no turn", owner)
	}
	leave := h.leave[owner][0]
	h.leave[owner] = h.leave[owner][1:]
	h.mu.Unlock()
	leave()
	leave() // once is enough
	synctest.Wait()
}

func (h *holder) want(owners ...string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.got, owners) {
		h.t.Errorf("turns were given to %v, want %v", h.got, owners)
	}
	h.got = nil
}

// TestAnOwnersManyWaitForTheirOwnTurns: one owner never has all turns, and one who
// comes late with little is next.
func TestAnOwnersManyWaitForTheirOwnTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHolder(t, New(4, 100))
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
	})
}

// TestLines: a line has an end, and who leaves it leaves no hole.
func TestLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := New(1, 2)
		h := newHolder(t, table)
		gone, leave := context.WithCancel(t.Context())
		h.ask(t.Context(), "a")
		h.ask(gone, "a")
		h.ask(t.Context(), "a")
		if _, crowded, err := table.Take(t.Context(), "a"); !crowded || err != nil {
			t.Errorf("a third waits in a line of two: %v", err)
		}
		leave()
		synctest.Wait()
		if _, _, err := table.Take(gone, "b"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		h.want("a")
		h.end("a")
		h.want("a")
		h.end("a")
		if len(table.lines) != 0 || table.taken != 0 {
			t.Errorf("%d lines and %d turns are left", len(table.lines), table.taken)
		}
	})
}

// TestNoTurnIsLost when waiters leave in the moment in which they are served.
func TestNoTurnIsLost(t *testing.T) {
	t.Parallel()
	table := New(2, 1000)
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 0 {
				go cancel()
			}
			leave, _, err := table.Take(ctx, string(rune('a'+i%7)))
			if err == nil {
				leave()
			}
		})
	}
	all.Wait()
	table.mu.Lock()
	defer table.mu.Unlock()
	if table.taken != 0 || len(table.lines) != 0 {
		t.Errorf("%d turns are taken, %d lines are left", table.taken, len(table.lines))
	}
}
