package suspend

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
)

// noRoom is the note of a sandbox for whose image there was no room.
const noRoom = "there is no room for its image"

// thawPauses are those between the tries to thaw.
func thawPauses() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}
}

// trouble is why a sandbox is not frozen: a note for people, and what lies behind
// it, if anything does.
type trouble struct {
	note  string
	cause error
}

// Error is all of it.
func (t *trouble) Error() string {
	if t.cause == nil {
		return t.note
	}
	return t.note + ": " + t.cause.Error()
}

// Unwrap returns the cause.
func (t *trouble) Unwrap() error { return t.cause }

// freeze writes the sandbox to disk, for a pause or for its holds. With an error it
// goes on; or, if ctx is over, who ended that takes care of it.
func (l *List) freeze(ctx context.Context, pausing, files bool) error {
	if l.cfg.Body == nil {
		return &trouble{note: "its engine can't freeze sandboxes"}
	}
	done, err := takeTurn(ctx, l.cfg.Shelf.freezes, l.cfg.Owner)
	if err != nil {
		return err
	}
	defer done()
	l.steady.Lock()
	l.changeState(Freezing)
	if err := l.writeImage(ctx, pausing, files); err != nil {
		l.mu.Lock()
		l.files = false
		l.mu.Unlock()
		if l.kill.Err() == nil {
			l.changeState(Running)
			l.steady.Unlock()
		} // otherwise Close has come, and leave gives the lock back
		return err
	}
	l.mu.Lock()
	l.paused, l.rested = pausing, pausing
	if files {
		l.waits = nil // who waited has ended with the guest
	}
	l.mu.Unlock()
	l.changeState(Frozen)
	return nil
}

// writeImage makes the image: room is taken first, then the keeper remembers what is
// waited for, so that a daemon that dies from here on is understood by the next.
func (l *List) writeImage(ctx context.Context, pausing, files bool) error {
	shelf, id := l.cfg.Shelf, l.cfg.Sandbox
	if err := shelf.takeRoom(l.shelfToken(), id, l.estimate(ctx)); err != nil {
		return &trouble{noRoom, err}
	}
	faultpoint.Hit(faultpoint.FreezeRoom)
	began := time.Now()
	l.mu.Lock()
	l.since, l.files = began.UTC(), files
	l.mu.Unlock()
	err := l.rememberHolds(l.kill, pausing)
	faultpoint.Hit(faultpoint.FreezeRemembered)
	if err == nil {
		err = shelf.Drop(id) // what an interrupted freeze left
	}
	if err == nil {
		err = l.toShelf(files)
	}
	if err != nil {
		if l.kill.Err() == nil { // otherwise Close has come; who closes takes all of it away
			l.forgetImage()
		}
		return &trouble{"it could not be frozen", err}
	}
	faultpoint.Hit(faultpoint.FreezeWritten)
	size := shelf.Keep(l.shelfToken(), id)
	to := Frozen
	if pausing {
		to = Paused
	}
	l.recordChange(Change{To: to, Approvals: approvals(l.View().Holds), Bytes: size, Files: files, Took: time.Since(began)})
	faultpoint.Hit(faultpoint.FreezeRecorded)
	return nil
}

func (l *List) toShelf(files bool) error {
	path := l.cfg.Shelf.Path(l.cfg.Sandbox)
	if files {
		return l.cfg.Body.FreezeFiles(l.kill, path)
	}
	return l.cfg.Body.Freeze(l.kill, path)
}

// forgetImage drops the image, and what the keeper remembers of the freeze.
func (l *List) forgetImage() {
	if err := l.cfg.Shelf.Drop(l.cfg.Sandbox); err != nil {
		l.cfg.Log.Error("the image of a frozen sandbox can't be removed", "sandbox", l.cfg.Sandbox, "err", err)
	}
	ctx, cancel := context.WithTimeout(l.kill, guestTimeout)
	defer cancel()
	if err := l.cfg.Remember(ctx, nil); err != nil {
		l.cfg.Log.Error("the keeper was not told that a sandbox is not frozen any more", "sandbox", l.cfg.Sandbox, "err", err)
	}
}

// giveUp notes why the sandbox waits unfrozen, and records it once.
func (l *List) giveUp(err error) {
	problem := err.Error()
	note := problem
	if t, ok := errors.AsType[*trouble](err); ok && t.note == noRoom {
		note = noRoom // what takes the room is for the operator
	}
	l.mu.Lock()
	if len(l.waits) > 0 {
		l.note = note
	}
	l.wakeWaiters()
	l.mu.Unlock()
	l.cfg.Log.Warn("a sandbox waits unfrozen", "sandbox", l.cfg.Sandbox, "why", problem)
	l.recordChange(Change{To: Running, Approvals: approvals(l.View().Holds), Problem: problem})
}

// recordChange outlives whoever ends the sandbox meanwhile.
func (l *List) recordChange(c Change) { l.cfg.Record(context.WithoutCancel(l.life), c) }

// rememberHolds has the holds kept as they are now.
func (l *List) rememberHolds(ctx context.Context, paused bool) error {
	l.mu.Lock()
	s := &Saved{Since: l.since, Paused: paused, Files: l.files, Silent: l.silent}
	for _, w := range l.waits {
		if !l.files { // else nobody waits any more when it goes on
			s.Holds = append(s.Holds, w.Hold)
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, guestTimeout)
	defer cancel()
	return l.cfg.Remember(ctx, s)
}

// sleepUntilAnswered waits until nothing is pending any more, and thaws. False: the list, the
// daemon or the sandbox came to its end.
func (l *List) sleepUntilAnswered(ctx context.Context) bool {
	var kept []string
	was := l.View().State
	for ctx.Err() == nil {
		v := l.View()
		if v.Pausing {
			l.pauseFrozen(ctx)
			continue
		}
		ids := approvals(v.Holds)
		if kept != nil && !slices.Equal(ids, kept) { // requests that were on their way
			l.rememberFrozen(ctx, v.State == Paused)
		}
		kept = append([]string{}, ids...)
		if v.State == Paused {
			was = Paused
			awaitClosed(ctx, v.Changed, 0)
			continue
		}
		pending, changed, err := l.cfg.Queue.Pending(ctx, ids)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.cfg.Log.Error("the approval queue can't be asked; what is frozen stays so", "sandbox", l.cfg.Sandbox, "err", err)
			awaitClosed(ctx, nil, queuePause)
		case len(pending) == 0:
			if done, ok := l.thawSandbox(ctx); done {
				return ok
			}
		default:
			if was == Paused { // resumed, and not free to go
				was = Frozen
				l.rememberFrozen(ctx, false)
				l.tellMoved(Frozen)
			}
			select {
			case <-changed:
			case <-v.Changed:
			case <-ctx.Done():
			}
		}
	}
	return false
}

// rememberFrozen has the keeper know anew what a frozen sandbox waits for. It is
// tried once: a keeper that was not told lets the next daemon wait for what was.
func (l *List) rememberFrozen(ctx context.Context, paused bool) {
	if err := l.rememberHolds(ctx, paused); err != nil {
		l.cfg.Log.Error("the keeper was not told what a frozen sandbox waits for", "sandbox", l.cfg.Sandbox, "err", err)
	}
}

// thawSandbox lets the sandbox go on. One that can't is lost. done is false if it stays on disk: somebody paused it just before,
// or what it shows of the host may not be shown now, and it is paused for that.
func (l *List) thawSandbox(ctx context.Context) (done, ok bool) {
	if !l.leaveShelf() {
		return false, false
	}
	began := time.Now()
	faultpoint.Hit(faultpoint.ThawBegun)
	if err := l.tryThaw(ctx); err != nil {
		if l.kill.Err() == nil && ctx.Err() == nil {
			if withheld, ok := errors.AsType[*withheld](err); ok {
				l.stayPaused(withheld)
				return false, false
			}
			l.cfg.Lost("it was frozen and can't go on: " + err.Error())
		}
		return true, false
	}
	faultpoint.Hit(faultpoint.ThawRunning)
	took := time.Since(began)
	if !l.wakeGuest() {
		return true, false
	}
	faultpoint.Hit(faultpoint.ThawWoken)
	l.mu.Lock()
	c := Change{To: Running, Approvals: l.frozenFor(), Took: took, Frozen: began.Sub(l.since), Pause: l.rested, Files: l.files}
	l.files = false
	l.mu.Unlock()
	l.forgetImage()
	faultpoint.Hit(faultpoint.ThawForgotten)
	l.recordChange(c)
	faultpoint.Hit(faultpoint.ThawRecorded)
	l.changeState(Running)
	l.steady.Unlock()
	return true, true
}

// withheld is why what a sandbox shows of the host may not be shown now. The host can change that.
type withheld struct{ cause error }

// Error implements error.
func (w *withheld) Error() string { return w.cause.Error() }

// Unwrap returns the cause.
func (w *withheld) Unwrap() error { return w.cause }

// stayPaused has a sandbox that may not go on now stay as it is on disk, until somebody resumes it. A keeper that was not
// told lets the next daemon try to thaw it, which asks again.
func (l *List) stayPaused(why *withheld) {
	l.rememberFrozen(l.kill, true)
	l.mu.Lock()
	l.paused, l.rested, l.withheld = true, true, why
	l.mu.Unlock()
	l.cfg.Log.Warn("a sandbox stays paused: what it shows of the host may not be shown now", "sandbox", l.cfg.Sandbox, "why", why)
	l.recordChange(Change{To: Paused, Approvals: approvals(l.View().Holds), Pause: true, Problem: "it stays paused, and can be resumed later: " + why.Error()})
	l.changeState(Frozen) // shown as Paused now
}

// wakeGuest tells the guest of its thaw. False: it was started anew, and can't be used.
func (l *List) wakeGuest() bool {
	l.mu.Lock()
	files := l.files
	l.mu.Unlock()
	if files {
		err := l.cfg.Anew(l.kill)
		if err != nil && l.kill.Err() == nil {
			l.cfg.Lost("it was started on the files of its pause and can't be used: " + err.Error())
		}
		return err == nil
	}
	woken, cancel := context.WithTimeout(l.kill, guestTimeout)
	defer cancel()
	if err := l.cfg.Woken(woken); err != nil && l.kill.Err() == nil {
		l.cfg.Log.Warn("a guest was not told that it was frozen", "sandbox", l.cfg.Sandbox, "err", err)
	}
	return true
}

// leaveShelf begins a thaw, unless somebody wants the sandbox paused: a pause that
// was asked for before is there before.
func (l *List) leaveShelf() bool {
	l.mu.Lock()
	wanted := l.paused || l.pausing != nil
	if !wanted {
		l.state = Thawing
		l.wakeWaiters()
	}
	l.mu.Unlock()
	if !wanted {
		l.tellMoved(Thawing)
	}
	return !wanted
}

// tryThaw tries a few times, with growing pauses: the host may be short of memory. A file that is
// not as it was when it was frozen does not become so.
func (l *List) tryThaw(ctx context.Context) error {
	pauses := thawPauses()
	for try := 0; ; try++ {
		err := l.thawOnce(ctx)
		if err == nil || try == len(pauses) || ctx.Err() != nil || errors.Is(err, fault.ErrConflict) {
			return err
		}
		if _, ok := errors.AsType[*withheld](err); ok { // a person has to see to it
			return err
		}
		l.cfg.Log.Warn("a sandbox could not be thawed; it is tried again", "sandbox", l.cfg.Sandbox, "try", try+1, "err", err)
		if !awaitClosed(ctx, nil, pauses[try]) {
			return err
		}
	}
}

func (l *List) thawOnce(ctx context.Context) error {
	done, err := takeTurn(ctx, l.cfg.Shelf.thaws, l.cfg.Owner)
	if err != nil {
		return err
	}
	defer done()
	if l.cfg.MayThaw != nil {
		if err := l.cfg.MayThaw(); err != nil {
			return &withheld{err}
		}
	}
	return l.cfg.Body.Thaw(l.kill, l.cfg.Shelf.Path(l.cfg.Sandbox))
}

// frozenFor are the approvals that the sandbox was frozen for. Needs mu.
func (l *List) frozenFor() []string {
	var holds []Hold
	for _, w := range l.waits {
		holds = append(holds, w.Hold)
	}
	return approvals(holds)
}
