package waiting

import (
	"context"
	"slices"
	"time"
)

// noRoom is the note of a sandbox for whose image there was no room.
const noRoom = "there is no room for its image"

// thawPauses are those between the tries to thaw.
func thawPauses() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 25 * time.Second}
}

// freeze writes the sandbox to disk; false if it goes on and waits unfrozen.
func (l *List) freeze(ctx context.Context) bool {
	if l.cfg.Body == nil {
		l.giveUp("its engine can't freeze sandboxes", nil)
		return false
	}
	done, err := l.cfg.Shelf.turn(ctx)
	if err != nil {
		return false
	}
	defer done()
	l.steady.Lock()
	l.move(Freezing)
	if !l.write(ctx) {
		if l.kill.Err() == nil {
			l.move(Running)
			l.steady.Unlock()
		} // otherwise Close has come, and leave gives the lock back
		return false
	}
	l.move(Frozen)
	return true
}

// write makes the image: room is taken first, then the keeper remembers what is
// waited for, so that a daemon that dies from here on is understood by the next.
func (l *List) write(ctx context.Context) bool {
	shelf, id := l.cfg.Shelf, l.cfg.Sandbox
	if err := shelf.take(id, l.estimate(ctx)); err != nil {
		l.giveUp(noRoom, err)
		return false
	}
	began := time.Now()
	l.mu.Lock()
	l.since = began.UTC()
	l.mu.Unlock()
	err := l.remember(l.kill)
	if err == nil {
		err = shelf.Drop(id) // what an interrupted freeze left
	}
	if err == nil {
		err = l.cfg.Body.Freeze(l.kill, shelf.Path(id))
	}
	if err != nil {
		l.undo(err)
		return false
	}
	size := shelf.Keep(id)
	l.record(Change{To: Frozen, Approvals: approvals(l.View().Holds), Bytes: size, Took: time.Since(began)})
	return true
}

// undo takes back what a freeze that failed had begun.
func (l *List) undo(err error) {
	if l.kill.Err() != nil {
		return // Close has come; who closes takes all of it away
	}
	l.giveUp("it could not be frozen: "+err.Error(), nil)
	l.forget()
}

// forget drops the image, and what the keeper remembers of the freeze.
func (l *List) forget() {
	if err := l.cfg.Shelf.Drop(l.cfg.Sandbox); err != nil {
		l.cfg.Log.Error("the image of a frozen sandbox can't be removed", "sandbox", l.cfg.Sandbox, "err", err)
	}
	ctx, cancel := context.WithTimeout(l.kill, guestPatience)
	defer cancel()
	if err := l.cfg.Remember(ctx, nil); err != nil {
		l.cfg.Log.Error("the keeper was not told that a sandbox is not frozen any more", "sandbox", l.cfg.Sandbox, "err", err)
	}
}

// giveUp notes why the sandbox waits unfrozen, and records it once.
func (l *List) giveUp(note string, cause error) {
	l.mu.Lock()
	l.note = note
	l.tell()
	l.mu.Unlock()
	problem := note
	if cause != nil {
		problem += ": " + cause.Error()
	}
	l.cfg.Log.Warn("a sandbox waits unfrozen", "sandbox", l.cfg.Sandbox, "why", problem)
	l.record(Change{To: Running, Approvals: approvals(l.View().Holds), Problem: problem})
}

// record outlives whoever ends the sandbox meanwhile.
func (l *List) record(c Change) { l.cfg.Record(context.WithoutCancel(l.life), c) }

// remember has the holds kept as they are now, and returns what it kept.
func (l *List) remember(ctx context.Context) error {
	l.mu.Lock()
	s := &Saved{Since: l.since}
	for _, w := range l.waits {
		s.Holds = append(s.Holds, w.Hold)
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	return l.cfg.Remember(ctx, s)
}

// sleep waits until nothing is pending any more, and thaws. False: the list, the
// daemon or the sandbox came to its end.
func (l *List) sleep(ctx context.Context) bool {
	var kept []string
	for ctx.Err() == nil {
		v := l.View()
		ids := approvals(v.Holds)
		if kept != nil && !slices.Equal(ids, kept) { // requests that were on their way
			if err := l.remember(ctx); err != nil {
				l.cfg.Log.Error("the keeper was not told what a frozen sandbox waits for", "sandbox", l.cfg.Sandbox, "err", err)
			}
		}
		kept = append([]string{}, ids...)
		pending, changed, err := l.cfg.Queue.Pending(ctx, ids)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.cfg.Log.Error("the approval queue can't be asked; what is frozen stays so", "sandbox", l.cfg.Sandbox, "err", err)
			await(ctx, nil, queuePause)
		case len(pending) == 0:
			return l.thaw(ctx)
		default:
			select {
			case <-changed:
			case <-v.Changed:
			case <-ctx.Done():
			}
		}
	}
	return false
}

// thaw lets the sandbox go on. One that can't is lost.
func (l *List) thaw(ctx context.Context) bool {
	l.move(Thawing)
	began := time.Now()
	if err := l.tryThaw(ctx); err != nil {
		if l.kill.Err() == nil && ctx.Err() == nil {
			l.cfg.Lost("it was frozen and can't go on: " + err.Error())
		}
		return false
	}
	took := time.Since(began)
	woken, cancel := context.WithTimeout(l.kill, guestPatience)
	defer cancel()
	if err := l.cfg.Woken(woken); err != nil && l.kill.Err() == nil {
		l.cfg.Log.Warn("a guest was not told that it was frozen", "sandbox", l.cfg.Sandbox, "err", err)
	}
	l.mu.Lock()
	ids, frozen := l.ids(), began.Sub(l.since)
	l.mu.Unlock()
	l.forget()
	l.record(Change{To: Running, Approvals: ids, Took: took, Frozen: frozen})
	l.move(Running)
	l.steady.Unlock()
	return true
}

// tryThaw tries a few times, with growing pauses: the host may be short of memory.
func (l *List) tryThaw(ctx context.Context) error {
	pauses := thawPauses()
	for try := 0; ; try++ {
		err := l.thawOnce(ctx)
		if err == nil || try == len(pauses) || ctx.Err() != nil {
			return err
		}
		l.cfg.Log.Warn("a sandbox could not be thawed; it is tried again", "sandbox", l.cfg.Sandbox, "try", try+1, "err", err)
		if !await(ctx, nil, pauses[try]) {
			return err
		}
	}
}

func (l *List) thawOnce(ctx context.Context) error {
	done, err := l.cfg.Shelf.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return l.cfg.Body.Thaw(l.kill, l.cfg.Shelf.Path(l.cfg.Sandbox))
}

// ids are the approvals that the sandbox was frozen for. Needs mu.
func (l *List) ids() []string {
	var holds []Hold
	for _, w := range l.waits {
		holds = append(holds, w.Hold)
	}
	return approvals(holds)
}
