package clock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const day = 24 * time.Hour

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// machine is a host whose clock the test sets.
type machine struct {
	wall  time.Time
	since time.Duration
	boot  string
	file  string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	return &machine{wall: noon(), since: time.Hour, boot: "first", file: filepath.Join(t.TempDir(), "clock")}
}

// pass lets time go by.
func (m *machine) pass(d time.Duration) { m.wall, m.since = m.wall.Add(d), m.since+d }

// set moves the wall alone.
func (m *machine) set(by time.Duration) { m.wall = m.wall.Add(by) }

// reboot begins another boot after some time.
func (m *machine) reboot(down time.Duration) {
	m.wall, m.since, m.boot = m.wall.Add(down), 5*time.Second, m.boot+"+"
}

// open starts a process.
func (m *machine) open(t *testing.T) *clock.Clock {
	t.Helper()
	c, err := clock.Open(m.file, clock.Options{
		Wall: func() time.Time { return m.wall }, Progress: func() time.Duration { return m.since }, Boot: m.boot,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantJump(t *testing.T, c *clock.Clock, want time.Duration) {
	t.Helper()
	r := c.Read()
	if off := r.Jump() - want; off.Abs() > 2*time.Second {
		t.Errorf("the jump is %v, not %v", r.Jump(), want)
	}
	if r.Jumped() != (want != 0) {
		t.Errorf("Jumped is %v with a jump of %v", r.Jumped(), want)
	}
	if r.Earliest().After(r.Latest()) {
		t.Errorf("%v is before %v", r.Latest(), r.Earliest())
	}
}

// TestJump: what the wall says beside the progress is a jump, there and back.
func TestJump(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := m.open(t)
	for range 100 {
		m.pass(time.Hour)
		wantJump(t, c, 0)
	}
	for _, by := range []time.Duration{30 * day, -30 * day, time.Minute, -time.Minute} {
		before := c.Read().Now
		m.set(by)
		m.pass(time.Hour)
		wantJump(t, c, by)
		if now := c.Read().Now; !now.Equal(before.Add(time.Hour)) {
			t.Errorf("after a jump of %v it is %v, and an hour after %v it is not", by, now, before)
		}
		m.set(-by)
		wantJump(t, c, 0)
	}
}

// TestSmallSteps: steps of seconds are believed; many of them in a row are not.
func TestSmallSteps(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := m.open(t)
	for range 200 { // a clock that is set by two seconds twice a day
		m.pass(12 * time.Hour)
		m.set(2 * time.Second)
		wantJump(t, c, 0)
	}
	for range 100 { // and one that somebody moves by twenty a minute
		m.pass(time.Minute)
		m.set(20 * time.Second)
		c.Read()
	}
	wantJump(t, c, 2000*time.Second)
}

// TestRestart: the next process compares with what the one before kept, and knows that
// the wall has jumped, also while nothing ran.
func TestRestart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.open(t)
	m.pass(3 * day)
	wantJump(t, m.open(t), 0)
	m.set(30 * day)
	wantJump(t, m.open(t), 30*day)
	m.pass(day)
	c := m.open(t)
	wantJump(t, c, 30*day)
	if before, err := c.Accept(); err != nil || before.Jump() != 30*day {
		t.Fatal(before, err)
	}
	wantJump(t, c, 0)
	wantJump(t, m.open(t), 0)
	m.set(-30 * day)
	wantJump(t, m.open(t), -30*day)
}

// TestReboot: progress begins anew. Back before what is known is a jump, an open jump
// stays one, and forward can't be told.
func TestReboot(t *testing.T) {
	t.Parallel()
	t.Run("well", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.open(t)
		m.reboot(3 * day)
		wantJump(t, m.open(t), 0)
	})
	t.Run("back", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.open(t)
		m.reboot(-10 * day)
		wantJump(t, m.open(t), -10*day)
		m.pass(time.Hour)
		c := m.open(t)
		wantJump(t, c, -10*day)
		m.set(10*day + time.Minute - time.Hour) // somebody sets it right
		if _, err := c.Accept(); err != nil {
			t.Fatal(err)
		}
		wantJump(t, m.open(t), 0)
	})
	t.Run("back before the last record", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.open(t)
		last := m.wall.Add(5 * day)
		m.reboot(time.Hour)
		c := m.open(t)
		if err := c.Known(last); err != nil {
			t.Fatal(err)
		}
		wantJump(t, c, time.Hour-5*day)
		wantJump(t, m.open(t), time.Hour-5*day)
	})
	t.Run("an open jump", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.open(t)
		m.set(30 * day)
		m.open(t)
		m.reboot(time.Hour)
		wantJump(t, m.open(t), 30*day+time.Hour)
		m.set(-30 * day)
		m.reboot(time.Hour)
		wantJump(t, m.open(t), 0)
	})
}

// TestKnownOfThisBoot: a record that is later than the time tells nothing where the mark
// is of this boot: somebody has accepted a wall that went back.
func TestKnownOfThisBoot(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.open(t)
	c := m.open(t)
	if err := c.Known(m.wall.Add(day)); err != nil {
		t.Fatal(err)
	}
	wantJump(t, c, 0)
}

// TestADamagedMark: what can't be read is no mark, and no clock.
func TestADamagedMark(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "not JSON", `{"boot":"first"}`} {
		file := filepath.Join(t.TempDir(), "clock")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := clock.Open(file, clock.Options{}); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTheMachinesOwn: this machine's clock is one that can be believed, and another
// process with its mark tells the same time.
func TestTheMachinesOwn(t *testing.T) {
	t.Parallel()
	c, err := clock.Open(filepath.Join(t.TempDir(), "clock"), clock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantJump(t, c, 0)
	wantJump(t, clock.From(c.Mark()), 0)
	early := c.Mark()
	early.Time = early.Time.Add(-day)
	wantJump(t, clock.From(early), day)
}
