package sandbox

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// tracker moves sandboxes from state to state, and has the journal know.
type tracker struct {
	journal    *journal.Feed
	ends       *expiry.Schedule
	quotas     *quota.Book
	boot       func() (boot string, since time.Duration) // as in Config
	background *background
	log        *slog.Logger
}

// enterState moves a sandbox to another state; fault.ErrConflict if there is no such
// move. A journal that can't be written keeps nobody from that: it is made up for
// by the next reconcile.
func (t *tracker) enterState(ctx context.Context, s *Sandbox, to State, reason string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return t.stepLocked(ctx, s, to, reason)
}

// stepLocked needs s.turn.
func (t *tracker) stepLocked(ctx context.Context, s *Sandbox, to State, reason string) error {
	if !s.entered.MayBecome(to) {
		return fault.New(fault.ErrConflict, "the sandbox %s is %s and can't become %s", s.info.ID, s.entered, to)
	}
	t.correct(ctx, s, to, reason)
	return nil
}

// correct has a sandbox in a state, whatever it was in. Needs s.turn.
func (t *tracker) correct(ctx context.Context, s *Sandbox, to State, reason string) {
	switch to {
	case Running, Snapshotting, Destroying, Destroyed, Failed, Creating:
		s.setState(to)
	case Freezing, Frozen, Paused, Thawing: // the list's
	}
	s.entered = to
	if err := t.journal.Enter(ctx, t.entryOf(s), s.written, reason); err != nil {
		t.log.Error("a sandbox's change of state is not in the journal; it is made up for later", "sandbox", s.info.ID, "run", s.info.Run, "to", to, "err", err)
		return
	}
	s.written = to
}

// entryOf is a sandbox as the journal has it. Needs s.turn.
func (t *tracker) entryOf(s *Sandbox) Entry {
	return Entry{Info: s.info, State: s.entered, Clock: t.clockOf(s), Key: s.key, Request: s.request, First: s.first, Guards: s.commands.Guards()}
}

func (t *tracker) clockOf(s *Sandbox) Clock {
	v, _ := t.ends.View(s.info.ID)
	boot, at := t.boot()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Clock{Lifetime: s.lifetime, Left: v.Left, Still: v.Still, Active: v.Active, Boot: boot, At: at}
}

// rewrite brings the journal up to date with what has changed but its state, and
// with what could not be written before.
func (t *tracker) rewrite(ctx context.Context, s *Sandbox) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.entered == Destroyed {
		return
	}
	var err error
	if s.written == s.entered {
		err = t.journal.Put(ctx, t.entryOf(s))
	} else if err = t.journal.Enter(ctx, t.entryOf(s), s.written, "told late, because the journal could not be written"); err == nil {
		s.written = s.entered
	}
	if err != nil {
		t.log.Error("a sandbox can't be written to the journal", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
}

// catchUp rewrites a sandbox whose state the journal lacks.
func (t *tracker) catchUp(ctx context.Context, s *Sandbox) {
	s.turn.Lock()
	behind := s.written != s.entered
	s.turn.Unlock()
	if behind {
		t.rewrite(ctx, s)
	}
}

// followMove follows the sandbox's way to disk and back.
func (t *tracker) followMove(s *Sandbox, to suspend.State) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.entered.Ends() {
		return // what takes it away comes after all of that
	}
	switch to {
	case suspend.Paused:
		t.quotas.Rest(s.info.ID)
	case suspend.Thawing, suspend.Running: // whoever let it go on has asked for its share
		t.quotas.Resumed(s.info.ID)
	case suspend.Freezing, suspend.Frozen:
	}
	if err := t.stepLocked(t.background.ctx, s, State(to), ""); err != nil {
		t.log.Error("a sandbox moved as none may", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
}

// stoodStill is told when the sandbox's time counts no more, or does again. The
// journal gets to know of it in the background: the caller must not wait.
func (t *tracker) stoodStill(s *Sandbox, still bool) {
	t.ends.Still(s.info.ID, still)
	if !t.background.isOver() {
		t.background.inTurn(s.info.Owner.Token, func() { t.rewrite(t.background.ctx, s) })
	}
}

// activeFor is how long a sandbox has not stood still: time in which it waits for a person, frozen or not, or is
// paused, does not count. It goes on where it was under the next daemon.
func (t *tracker) activeFor(id string) time.Duration {
	v, _ := t.ends.View(id)
	return v.Active
}

// guarded is told that a command with a time limit has begun. The journal gets to know of it in the background, or,
// while the sandbox is being made, once it runs. It is written once for all that begin before their turn comes.
func (t *tracker) guarded(s *Sandbox) {
	if t.background.isOver() || s.guarding.Swap(true) {
		return
	}
	t.background.inTurn(s.info.Owner.Token, func() {
		s.turn.Lock()
		s.guarding.Store(false) // what is guarded from now on is written anew
		made := s.entered != Creating
		s.turn.Unlock()
		if made {
			t.rewrite(t.background.ctx, s)
		}
	})
}

// snapshotting has a running sandbox stand as one that is being copied; leave ends
// that.
func (t *tracker) snapshotting(ctx context.Context, s *Sandbox) (leave func(), err error) {
	if err := t.enterState(ctx, s, Snapshotting, ""); err != nil {
		return nil, err
	}
	return func() {
		s.turn.Lock()
		defer s.turn.Unlock()
		if s.entered == Snapshotting { // it may be being destroyed meanwhile
			t.correct(ctx, s, Running, "")
		}
	}, nil
}

// extend replaces when a sandbox ends, from now on.
func (t *tracker) extend(ctx context.Context, s *Sandbox, l Lifetime) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.entered.Ends() {
		return s.entered.Refuse(s.info.ID)
	}
	if s.waits.View().State == suspend.Paused {
		t.ends.Renew(s.info.ID) // whose time was over has had its end, and has another one
	}
	if err := t.ends.Set(s.info.ID, termsOf(l)); err != nil {
		return err
	}
	s.mu.Lock()
	l.Lease = keptOr(l.Lease, s.lifetime.Lease)
	s.lifetime = l
	s.mu.Unlock()
	if err := t.journal.Put(context.WithoutCancel(ctx), t.entryOf(s)); err != nil {
		t.log.Error("a change of a sandbox's end is not in the journal; it is made up for later", "sandbox", s.info.ID, "run", s.info.Run, "err", err)
	}
	return nil
}

// termsOf are what the schedule knows of a lifetime.
func termsOf(l Lifetime) expiry.Terms { return expiry.Terms{TTL: l.TTL, Idle: l.Idle} }

// shareOf is what a sandbox has of its owner's quota.
func shareOf(info Info) quota.Share {
	return quota.Share{Token: info.Owner.Token, CPU: info.Limits.CPU, MemoryBytes: info.Limits.MemoryBytes, DiskBytes: info.Limits.DiskBytes, LockBytes: info.LockBytes}
}

// sinceBoot is which boot of the machine this is and how long it is since, time in
// which it was suspended included: what two daemons can compare, whatever somebody
// does to the wall clock meanwhile.
func sinceBoot() (boot string, since time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0 // nothing can be compared, and every sandbox keeps what it had left
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(now.Nano())
}
