package suspend

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// How long is waited for what.
const (
	guestTimeout = 10 * time.Second // for a guest to answer a call
	queuePause   = 5 * time.Second  // before a queue that failed is asked again
	roomPause    = 5 * time.Minute  // before a full shelf is asked again
)

// tendList runs in the list's one goroutine, which is there while anything is waited for.
// Each turn looks at the list as it is now, so that what happens meanwhile needs
// no message of its own.
func (l *List) tendList() {
	ctx, cancel := context.WithCancel(l.life)
	defer cancel()
	defer safego.When(l.kill, cancel)()
	if l.View().State != Running && !l.sleepUntilAnswered(ctx) {
		l.leaveTending()
		return
	}
	for ctx.Err() == nil {
		v := l.View()
		if want := len(v.Holds) > 0; want != l.stopped && !v.Pausing {
			l.stopClocks(want)
			continue
		}
		if v.Pausing {
			l.hush()
			if !l.freezeForPause(ctx) {
				break
			}
			continue
		}
		if len(v.Holds) == 0 {
			if l.retire() {
				return
			}
			continue
		}
		if !l.tendOnce(ctx, v) {
			break
		}
	}
	l.leaveTending()
}

// tendOnce does one round of a list with holds; false ends the tending.
func (l *List) tendOnce(ctx context.Context, v View) bool {
	if !freezes(v.Holds) {
		return awaitClosed(ctx, v.Changed, 0)
	}
	if v.Note != "" { // it was tried
		return l.waitUnfrozen(ctx, v)
	}
	if !l.waitGrace(ctx) {
		return ctx.Err() == nil
	}
	if err := l.freeze(ctx, false, false); err != nil {
		if l.isOver(ctx) {
			return false
		}
		l.giveUp(err)
		return true
	}
	return l.sleepUntilAnswered(ctx)
}

// isOver tells whether the tending is to end; what Close ends comes a moment before ctx.
func (l *List) isOver(ctx context.Context) bool { return ctx.Err() != nil || l.kill.Err() != nil }

// waitUnfrozen waits for a change; now and then a full shelf has room again.
func (l *List) waitUnfrozen(ctx context.Context, v View) bool {
	if v.Note != noRoom {
		return awaitClosed(ctx, v.Changed, 0)
	}
	if !awaitClosed(ctx, v.Changed, roomPause) {
		return false
	}
	if l.View().Pausing {
		return true
	}
	if l.cfg.Shelf.checkRoomNow(l.shelfToken(), l.estimate(ctx)) == nil {
		l.mu.Lock()
		l.note = ""
		l.mu.Unlock()
	}
	return true
}

// waitGrace waits for the person who is quick. It tells whether the sandbox is to be
// frozen: the time is over with no hold answered in it, and the queue still has
// one of them pending.
func (l *List) waitGrace(ctx context.Context) bool {
	timer := time.NewTimer(l.cfg.After)
	defer timer.Stop()
	l.mu.Lock()
	seen := l.released
	l.mu.Unlock()
	for {
		v := l.View()
		if !freezes(v.Holds) || v.Pausing {
			return false
		}
		l.mu.Lock()
		if l.released != seen {
			seen = l.released
			timer.Reset(l.cfg.After)
		}
		l.mu.Unlock()
		select {
		case <-v.Changed:
		case <-ctx.Done():
			return false
		case <-timer.C:
			pending, _, err := l.cfg.Queue.Pending(ctx, approvals(v.Holds))
			if err == nil && len(pending) == 0 { // their requests are about to be released
				timer.Reset(l.cfg.After)
				continue
			}
			return ctx.Err() == nil
		}
	}
}

// retire ends the tending if nothing is waited for.
func (l *List) retire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waits) > 0 || l.pausing != nil {
		return false
	}
	l.tended = false
	return true
}

// leaveTending ends the tending with the list, or with the daemon.
func (l *List) leaveTending() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Running {
		l.steady.Unlock()
	}
	l.settlePause(fault.New(fault.ErrConflict, "the sandbox %s was not paused: it ended, or the daemon does", l.cfg.Sandbox))
	l.wakeWaiters()
}

// hush stops the clocks for a pause with memory, even if they stand still for a hold: whether the guest answers is
// kept with the pause. For a pause of files alone nobody is asked: all that has a clock ends with it, and a guest
// that is started anew since it does not answer would be waited for once more.
func (l *List) hush() {
	l.mu.Lock()
	files := l.pausing != nil && l.pausing.files
	l.mu.Unlock()
	if !files {
		l.stopClocks(true)
	}
}

// stopClocks tells the guest. One that does not answer counts on; its command's
// timeout may then be over early, which is on the safe side.
func (l *List) stopClocks(stopped bool) {
	ctx, cancel := context.WithTimeout(l.kill, guestTimeout)
	defer cancel()
	err := l.cfg.Clocks(ctx, stopped)
	l.stopped = stopped
	l.mu.Lock()
	l.silent = stopped && err != nil && !errors.Is(err, fault.ErrInvalid) // which is an answer
	l.mu.Unlock()
	if err != nil && l.kill.Err() == nil {
		l.cfg.Log.Warn("a guest was not told that its commands' clocks stand still, or go on", "sandbox", l.cfg.Sandbox, "stopped", stopped, "err", err)
	}
}

func (l *List) estimate(ctx context.Context) int64 {
	if l.cfg.Memory == nil {
		return 0
	}
	return l.cfg.Memory(ctx)
}

// awaitClosed returns when c is closed or the time is over (0: never); false if ctx is.
func awaitClosed(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-c:
	case <-over:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// freezes tells whether one of the holds is to freeze the sandbox.
func freezes(holds []Hold) bool {
	return slices.ContainsFunc(holds, func(h Hold) bool { return h.Freeze })
}

// approvals are the ids of the holds that freeze.
func approvals(holds []Hold) []string {
	var ids []string
	for _, h := range holds {
		if h.Freeze && !slices.Contains(ids, h.Approval) {
			ids = append(ids, h.Approval)
		}
	}
	return ids
}
