package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/pool"
)

// maker makes members that are nothing but names.
type maker struct {
	mu        sync.Mutex // guards what follows
	made      int
	awake     map[string]bool
	discarded map[string]int
	full      error
	broken    error
	asleep    map[string]error // members that can't be woken
}

func newMaker() *maker {
	return &maker{awake: map[string]bool{}, discarded: map[string]int{}, asleep: map[string]error{}}
}

func (m *maker) Make(_ context.Context, c pool.Class) (pool.Member, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return pool.Member{}, m.broken
	}
	m.made++
	return pool.Member{ID: fmt.Sprint("sb", m.made), Class: c}, nil
}

func (m *maker) Wake(_ context.Context, one pool.Member) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.awake[one.ID] = true
	return m.asleep[one.ID]
}

func (m *maker) Discard(_ context.Context, one pool.Member) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.discarded[one.ID]++
	return nil
}

func (m *maker) Room(context.Context, pool.Class) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

func (m *maker) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// run tests a running pool; when it has ended, every member must have been
// claimed or discarded, and that once.
func run(t *testing.T, test func(t *testing.T, p *pool.Pool, m *maker) (claimed []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMaker()
		p := pool.New(m, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var over sync.WaitGroup
		over.Go(func() { p.Run(ctx) })
		gone := map[string]int{}
		for _, id := range test(t, p, m) {
			gone[id]++
		}
		cancel()
		over.Wait()
		for id, n := range m.discarded {
			gone[id] += n
		}
		for i := range m.made {
			if id := fmt.Sprint("sb", i+1); gone[id] != 1 {
				t.Errorf("the member %s was given away or discarded %d times", id, gone[id])
			}
		}
	})
}

func TestItFillsAndRefills(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, _ *maker) (claimed []string) {
		t.Helper()
		p.SetTargets(map[pool.Class]int{"a": 3, "b": 1, "c": 0})
		for range 10 {
			soon()
			if c := p.Counts(); c.Ready != 4 || c.Target != 4 {
				t.Fatalf("%+v", c)
			}
			one, ok := p.Claim(t.Context(), "a")
			if !ok || one.Class != "a" || p.Has(one.ID) {
				t.Fatal(one, ok)
			}
			claimed = append(claimed, one.ID)
		}
		if one, ok := p.Claim(t.Context(), "c"); ok {
			t.Error(one)
		}
		synctest.Wait()
		if c := p.Counts(); c.Hits != 10 || c.Misses != 0 {
			t.Errorf("%+v", c)
		}
		return claimed
	})
}

// TestClaimsComeFirst: who has claimed a member has the processor for a moment, unless
// few are left.
func TestClaimsComeFirst(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, m *maker) (claimed []string) {
		t.Helper()
		p.SetTargets(map[pool.Class]int{"a": 4})
		synctest.Wait()
		for _, want := range []int{4, 4, 5} { // made so far: with one of four left, another at once
			one, ok := p.Claim(t.Context(), "a")
			synctest.Wait()
			made := 0
			m.set(func() { made = m.made })
			if !ok || made != want {
				t.Fatalf("%v %v, and %d were made, want %d", one, ok, made, want)
			}
			claimed = append(claimed, one.ID)
		}
		soon()
		if p.Counts().Ready != 4 {
			t.Error(p.Counts())
		}
		return claimed
	})
}

// soon waits, on the bubble's clock, until the pool has taken its breath.
func soon() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// TestOneMemberOneClaim: of many who ask at once nobody gets what another has.
func TestOneMemberOneClaim(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, _ *maker) (claimed []string) {
		t.Helper()
		p.SetTargets(map[pool.Class]int{"a": 8})
		synctest.Wait()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if one, ok := p.Claim(t.Context(), "a"); ok {
					mu.Lock()
					defer mu.Unlock()
					claimed = append(claimed, one.ID)
				}
			})
		}
		wg.Wait()
		if len(claimed) < 8 {
			t.Errorf("%d were claimed of 8 that waited", len(claimed))
		}
		return claimed
	})
}

func TestWhatDoesNotWakeIsDiscarded(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, m *maker) []string {
		t.Helper()
		p.SetTargets(map[pool.Class]int{"a": 2})
		synctest.Wait()
		m.set(func() { m.asleep["sb1"] = errors.New("it is dead") })
		one, ok := p.Claim(t.Context(), "a")
		if !ok || one.ID != "sb2" || m.discarded["sb1"] != 1 {
			t.Error(one, ok, m.discarded)
		}
		return []string{one.ID}
	})
}

func TestALostMemberIsReplaced(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, m *maker) []string {
		t.Helper()
		p.SetTargets(map[pool.Class]int{"a": 2})
		synctest.Wait()
		p.Lost(t.Context(), "sb1")
		p.Lost(t.Context(), "sb99")
		synctest.Wait()
		if p.Has("sb1") || p.Counts().Ready != 2 || m.discarded["sb1"] != 1 {
			t.Error(p.Counts(), m.discarded)
		}
		return nil
	})
}

// TestNoRoom: nothing is made while the host has no room, and the pool fills
// when it has some again.
func TestNoRoom(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, m *maker) []string {
		t.Helper()
		m.set(func() { m.full = errors.New("memory is short") })
		p.SetTargets(map[pool.Class]int{"a": 1})
		synctest.Wait()
		if _, ok := p.Claim(t.Context(), "a"); ok || m.made != 0 || p.Counts().Misses != 1 {
			t.Error(ok, m.made, p.Counts())
		}
		m.set(func() { m.full, m.broken = nil, errors.New("a fork failed") })
		later()
		if p.Counts().Ready != 0 {
			t.Error("a member was made by a broken maker")
		}
		m.set(func() { m.broken = nil })
		later()
		if p.Counts().Ready != 1 {
			t.Error("the pool did not try again")
		}
		return nil
	})
}

// later waits, on the bubble's clock, until the pool has tried again.
func later() {
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

func TestSmallerTargets(t *testing.T) {
	run(t, func(t *testing.T, p *pool.Pool, m *maker) []string {
		t.Helper()
		p.SetTargets(map[pool.Class]int{"a": 4})
		synctest.Wait()
		p.SetTargets(map[pool.Class]int{"a": 1})
		synctest.Wait()
		if p.Counts().Ready != 1 || len(m.discarded) != 3 {
			t.Error(p.Counts(), m.discarded)
		}
		return nil
	})
}
