package commands

import (
	"maps"
	"time"
)

// The guest ends a command at its time limit. One that does not loses its sandbox: the *guard* of a command is the
// active time of its sandbox at which that happens. Time in which the sandbox waits for a person, or stands still, does
// not count. Guards are in the journal, so that they stay what they are however often daemons follow each other, and
// go with a command into copies.

// guardTime is how long a command with a time limit may go on; 0: as long as it likes.
func guardTime(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return 0
	}
	return timeout + timeoutGrace + guestGrace
}

// guardCommand has a command be guarded so long from now on; 0: it is not.
func (t *Table) guardCommand(c *tableCommand, left time.Duration) {
	if left <= 0 {
		return
	}
	until := t.place.Active() + left
	t.mu.Lock()
	c.until = until
	t.mu.Unlock()
	t.place.Guarded()
}

// guardAgain has a command that the daemon before followed have the guard that it had. Where the journal did not know
// of it yet, it has all of it anew: so long.
func (t *Table) guardAgain(c *tableCommand, anew time.Duration) {
	t.mu.Lock()
	until, known := t.inherited[c.id]
	if known {
		c.until = until
	}
	t.mu.Unlock()
	if !known {
		t.guardCommand(c, anew)
	}
}

// leftOf is how long a command may still go on; guarded is false where that has no end. It may be over.
func (t *Table) leftOf(c *tableCommand) (left time.Duration, guarded bool) {
	t.mu.Lock()
	until := c.until
	t.mu.Unlock()
	if until == 0 {
		return 0, false
	}
	return max(until-t.place.Active(), time.Nanosecond), true // one that stands still goes on first
}

// guardLeft is the same of an id, for a copy: 0 where there is no end, and a moment where it is over.
func (t *Table) guardLeft(id string) time.Duration {
	c := t.findCommand(id)
	if c == nil {
		return 0
	}
	left, guarded := t.leftOf(c)
	if !guarded {
		return 0
	}
	return max(left, time.Millisecond)
}

// Inherit takes the guards that the journal has of the commands that the daemon before followed, until FollowAgain
// knows which of them there are.
func (t *Table) Inherit(guards map[string]time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inherited = maps.Clone(guards)
}

// Guards are those of the commands that have one, by their ids, for the journal.
func (t *Table) Guards() map[string]time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	guards := maps.Clone(t.inherited)
	for id, c := range t.byID {
		if c.until == 0 {
			continue
		}
		if guards == nil {
			guards = map[string]time.Duration{}
		}
		guards[id] = c.until
	}
	return guards
}
