package expiry_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
)

// bench is a schedule under a clock of its own, and what it told.
type bench struct {
	*expiry.Schedule
	mu    sync.Mutex
	ended []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	b.Schedule = expiry.New(func(id string, why expiry.Cause) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended = append(b.ended, id+" "+string(why))
	})
	go b.Run(t.Context())
	return b
}

func (b *bench) pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

func (b *bench) want(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.ended, want) {
		t.Errorf("told was %q, want %q", b.ended, want)
	}
}

// start begins a clock that is announced.
func (b *bench) start(id string, terms expiry.Terms, left time.Duration) {
	b.Start(id, terms, left)
	b.Announce(id)
}

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start("late", expiry.Terms{TTL: minutes(3)}, minutes(3))
		b.start("soon", expiry.Terms{TTL: minutes(2)}, minutes(1))
		b.start("never", expiry.Terms{}, 0)
		b.pass(minutes(1) - 1)
		b.want(t)
		b.pass(1)
		b.want(t, "soon ttl")
		b.pass(minutes(9))
		b.want(t, "soon ttl", "late ttl")
	})
}

// TestAnEndBeforeItIsAnnounced is told when it is, once; what happened meanwhile counts.
func TestAnEndBeforeItIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Start("over", expiry.Terms{TTL: minutes(3)}, -minutes(1))
		b.Start("soon", expiry.Terms{TTL: minutes(3)}, minutes(2))
		b.Start("still", expiry.Terms{TTL: minutes(3)}, minutes(2))
		b.Still("still", true)
		b.pass(minutes(1))
		b.want(t)
		for _, id := range []string{"over", "soon", "still", "over", "unknown"} {
			b.Announce(id)
		}
		b.pass(0)
		b.want(t, "over ttl")
		b.pass(minutes(1))
		b.want(t, "over ttl", "soon ttl")
		b.pass(minutes(9))
		b.want(t, "over ttl", "soon ttl")
		b.Still("still", false)
		b.pass(minutes(2))
		b.want(t, "over ttl", "soon ttl", "still ttl")
	})
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start("a", expiry.Terms{TTL: minutes(60), Idle: minutes(5)}, minutes(60))
		for range 10 {
			b.pass(minutes(4))
			b.Touch("a")
		}
		b.want(t)
		b.pass(minutes(5))
		b.want(t, "a idle")
		b.Busy("a") // it was in use after all
		b.pass(minutes(5) - 1)
		b.want(t, "a idle")
		b.pass(1)
		b.want(t, "a idle", "a idle")
		b.Busy("a")
		b.pass(minutes(5))
		b.Busy("a")
		b.pass(minutes(5)) // that is an hour: being in use does not hold up the TTL
		b.want(t, "a idle", "a idle", "a idle", "a ttl")
		b.Renew("a")
		if v, _ := b.View("a"); v.Left != minutes(60) {
			t.Errorf("renewed, %v are left", v.Left)
		}
	})
}

// TestStill: time in which a clock stands still does not count, for either.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start("a", expiry.Terms{TTL: minutes(10), Idle: minutes(8)}, minutes(10))
		b.pass(minutes(7))
		b.Still("a", true)
		b.pass(minutes(600))
		b.want(t)
		v, _ := b.View("a")
		if v.Left != minutes(3) || !v.Still || time.Until(v.Ends) != minutes(1) {
			t.Errorf("%+v", v)
		}
		b.Still("a", false)
		b.pass(minutes(1) - 1)
		b.Touch("a")
		b.pass(minutes(2))
		b.want(t)
		b.pass(1)
		b.want(t, "a ttl")
	})
}

func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start("a", expiry.Terms{TTL: minutes(1)}, minutes(1))
		b.pass(minutes(1) - 1)
		if err := b.Set("a", expiry.Terms{TTL: minutes(5)}); err != nil {
			t.Fatal(err)
		}
		b.pass(minutes(5) - 1)
		b.want(t)
		b.pass(1)
		b.want(t, "a ttl")
		if err := b.Set("a", expiry.Terms{}); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("an extension after the end: %v", err)
		}
		if err := b.Set("b", expiry.Terms{}); !errors.Is(err, fault.ErrNotFound) {
			t.Error(err)
		}
		b.Drop("a")
		if _, there := b.View("a"); there {
			t.Error("it is still there")
		}
	})
}

// TestRace: of an extension and an end that come together exactly one wins.
func TestRace(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.start("a", expiry.Terms{TTL: minutes(1)}, minutes(1))
			time.Sleep(minutes(1))
			err := b.Set("a", expiry.Terms{TTL: minutes(1)})
			synctest.Wait()
			b.mu.Lock()
			ended := len(b.ended) == 1
			b.mu.Unlock()
			if ended == (err == nil) {
				t.Fatalf("ended: %v, extended: %v", ended, err)
			}
		})
	}
}

// TestMany: 200 that end at once are told once each, those that were dropped or
// stopped before are not, and one goroutine does it.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var want []string
		for i := range 200 {
			id := fmt.Sprint("sb", i)
			b.start(id, expiry.Terms{TTL: minutes(5)}, minutes(5))
			switch i % 4 {
			case 0:
				b.Drop(id)
			case 1:
				b.Still(id, true)
			default:
				want = append(want, id+" ttl")
			}
		}
		b.pass(minutes(5))
		b.mu.Lock()
		slices.Sort(b.ended)
		b.mu.Unlock()
		slices.Sort(want)
		b.want(t, want...)
	})
}

// TestActiveTime counts while a clock does not stand still, whatever terms it has and gets, and goes on from where it
// was.
func TestActiveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := expiry.New(func(string, expiry.Cause) {})
		s.Start("sb", expiry.Terms{}, 0)
		s.Activate("sb", time.Hour)
		active := func(want time.Duration) {
			t.Helper()
			if v, ok := s.View("sb"); !ok || v.Active != want {
				t.Errorf("active for %v, want %v", v.Active, want)
			}
		}
		active(time.Hour)
		time.Sleep(time.Second)
		s.Announce("sb")
		active(time.Hour + time.Second)
		s.Still("sb", true)
		time.Sleep(time.Minute)
		active(time.Hour + time.Second)
		s.Still("sb", false)
		if err := s.Set("sb", expiry.Terms{TTL: time.Second, Idle: time.Minute}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		s.Touch("sb")
		s.Renew("sb")
		active(time.Hour + 3*time.Second)
	})
}
