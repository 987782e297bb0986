// Package clock tells what time it is, and whether the host's clock may be believed.
//
// The host's wall clock can be set by whoever keeps it. Progress is the time since the machine's
// boot, suspended time included, which nobody sets. The wall clock has jumped when it is elsewhere
// than a Mark and the progress since then put it.
//
// A jump is a fact for whoever decides by time: an age must be old enough by either
// reading, an expiry is over by either. It lasts until the wall is back or a person says
// that it is right (Accept), over restarts and reboots too.
//
// Not guaranteed: that the wall was right when the first mark was made. Over a reboot,
// progress begins anew: that the wall went back before what is known to have been is
// noticed, that it went forward while the machine was down is not.
package clock

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	// Tolerance is how far the wall may be off before that is a jump: clocks are set by
	// seconds, and machines that stand still for a moment wake up late.
	Tolerance = 30 * time.Second
	// follow is how fast a mark follows a wall that is off by less: one part of so many
	// of the progress, so that many small steps do not make a large one.
	follow = 1000
	// together is how long reading the wall and the progress may take; what took longer
	// is read again.
	together = time.Second
)

// Source tells the time.
type Source interface {
	Read() Reading
}

// Reading is the time at one moment.
type Reading struct {
	// Now is the time to act by: the wall, and after a jump what the progress says.
	Now time.Time
	// Wall is what the host's clock says.
	Wall time.Time
}

// Jump is how far the wall is ahead of the time to act by, negative if it is behind it,
// and 0 if it is believed.
func (r Reading) Jump() time.Duration { return r.Wall.Sub(r.Now) }

// Jumped reports whether the wall is not believed.
func (r Reading) Jumped() bool { return !r.Wall.Equal(r.Now) }

// Why says in a sentence, without its end, what is wrong with the wall; "" if nothing is.
func (r Reading) Why() string {
	switch by := r.Jump().Round(time.Second); {
	case by > 0:
		return "the host's clock is " + by.String() + " ahead of the time that has passed"
	case by < 0:
		return "the host's clock is " + (-by).String() + " behind the time that has passed"
	}
	return ""
}

// Earliest is the earlier reading: how old something is, at least, counts from it.
func (r Reading) Earliest() time.Time {
	if r.Wall.Before(r.Now) {
		return r.Wall
	}
	return r.Now
}

// Latest is the later reading: what has ended by it has ended.
func (r Reading) Latest() time.Time {
	if r.Wall.After(r.Now) {
		return r.Wall
	}
	return r.Now
}

// Plain is a Source that believes a function.
type Plain func() time.Time

// Read implements Source.
func (p Plain) Read() Reading {
	now := p().Round(0)
	return Reading{Now: now, Wall: now}
}

// Clock is the installation's Source. Safe for concurrent use.
type Clock struct {
	file     string // "": the mark is not kept
	wall     func() time.Time
	progress func() time.Duration

	mu    sync.Mutex // guards what follows, and the file
	mark  Mark
	begun bool // the mark is the first of this boot, so that others may know better
}

var _ Source = (*Clock)(nil)

// Options of Open. Their zero value is the machine's own clock.
type Options struct {
	Wall     func() time.Time     // nil: the host's
	Progress func() time.Duration // since the boot; nil: the kernel's
	Boot     string               // which boot this is; "": the kernel's answer
}

func (o Options) orDefaults() (Options, error) {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Progress == nil {
		o.Progress = sinceBoot
	}
	if o.Boot == "" {
		boot, err := bootID()
		if err != nil {
			return o, fault.Wrap(fault.ErrUnavailable, err, "which boot of the machine this is can't be read, so nobody could tell whether its clock was set")
		}
		o.Boot = boot
	}
	return o, nil
}

// sinceBoot is the kernel's progress.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0 // there is no Linux without it
	}
	return time.Duration(now.Nano())
}

// Read tells the time.
func (c *Clock) Read() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked()
}

// readLocked reads the clock, as Read does; mu is held.
func (c *Clock) readLocked() Reading {
	wall, since := c.lookAtClocks()
	elapsed := since - c.mark.Since
	now := c.mark.Time.Add(elapsed)
	ahead := wall.Sub(now)
	if ahead.Abs() > Tolerance {
		return Reading{Now: now, Wall: wall}
	}
	if most := elapsed / follow; elapsed >= time.Second {
		c.mark.Time, c.mark.Since = now.Add(min(max(ahead, -most), most)), since
	}
	return Reading{Now: wall, Wall: wall}
}

// lookAtClocks reads the wall and the progress of one moment.
func (c *Clock) lookAtClocks() (wall time.Time, since time.Duration) {
	since = c.progress()
	for {
		wall = c.wall().UTC().Round(0)
		after := c.progress()
		if after-since < together {
			return wall, after
		}
		since = after // the process stood still between the two
	}
}

// Accept believes the wall from now on, and keeps that.
func (c *Clock) Accept() (before Reading, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.readLocked()
	old := c.mark
	wall, since := c.lookAtClocks()
	c.mark.Time, c.mark.Since = wall, since
	if err := c.keepLocked(); err != nil {
		c.mark = old
		return before, err
	}
	return before, nil
}

// Known tells the clock of a time that has been, by the last record of a log: after a
// reboot a wall that is before it has gone back.
func (c *Clock) Known(last time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun || !c.readLocked().Now.Before(last.Add(-Tolerance)) {
		return nil
	}
	_, c.mark.Since = c.lookAtClocks()
	c.mark.Time = last
	return c.keepLocked()
}
