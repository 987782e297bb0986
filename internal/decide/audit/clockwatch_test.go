package audit

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

// leaping is a clock that the test lets pass and jump.
type leaping struct {
	began     time.Time
	time, far atomic.Int64 // nanoseconds
}

func (l *leaping) Read() clock.Reading {
	now := l.began.Add(time.Duration(l.time.Load()))
	return clock.Reading{Now: now, Wall: now.Add(time.Duration(l.far.Load()))}
}

// TestAJumpStaysOutOfTheTimes: records keep the true time while the host's clock is a
// month ahead, with what it says beside it, and after it is back; the jump and its end
// are on record before the first record that they concern, and without one.
func TestAJumpStaysOutOfTheTimes(t *testing.T) {
	month := 30 * 24 * time.Hour
	c := &leaping{began: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	l, err := Open(dir, Options{Clock: c})
	must(t, err)
	check := func(at, wall time.Duration) {
		t.Helper()
		r := add(t, l, Record{Kind: KindCommand, Outcome: Started})
		if !r.Time.Equal(c.began.Add(at)) || wall == 0 != r.Clock.IsZero() || wall != 0 && !r.Clock.Equal(c.began.Add(wall)) {
			t.Errorf("the record has %v, and beside it %v", r.Time, r.Clock)
		}
	}
	check(0, 0)
	c.far.Store(int64(month))
	c.time.Store(int64(time.Hour))
	check(time.Hour, time.Hour+month)
	if last, err := l.LastTime(); err != nil || !last.Equal(c.began.Add(time.Hour)) {
		t.Errorf("the last record is known to be of %v, %v", last, err)
	}
	c.far.Store(0)
	c.time.Store(int64(2 * time.Hour))
	check(2*time.Hour, 0)
	c.far.Store(-int64(month))
	for range 2 {
		must(t, l.NoteClock(t.Context()))
	}
	check(2*time.Hour, 2*time.Hour-month)
	var said []string
	for _, r := range collect(t, l, Filter{Kinds: []Kind{KindLog}}) {
		said = append(said, string(r.Outcome)+" "+r.Detail["event"]+" "+r.Detail["seconds"])
	}
	if want := []string{"alarm clock_jump 2592000", "finished clock_right ", "alarm clock_jump -2592000"}; !slices.Equal(said, want) {
		t.Errorf("on record is %q", said)
	}
	must(t, l.Close())
	if v := verify(t, dir, VerifyOptions{}); !v.Sound {
		t.Errorf("%+v", v)
	}
	again, err := Open(dir, Options{Clock: c})
	must(t, err)
	defer again.Close()
	if last, err := again.LastTime(); err != nil || !last.Equal(c.began.Add(2*time.Hour-month)) {
		t.Errorf("after a restart the last record is known to be of %v, %v", last, err)
	}
}
