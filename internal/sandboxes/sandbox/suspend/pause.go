package suspend

import (
	"context"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
)

// pause is one that was asked for; done is closed when it is there, or err says
// why it is not.
type pause struct {
	files bool
	done  chan struct{}
	err   error
}

// Pause writes the sandbox to disk, where it stays until Resume. It goes on when
// ctx ends. A caller that asks while it is being paused joins that pause. A fault.ErrConflict
// for one that is paused already; a fault.ErrUnavailable if its engine can't, if there is no room, or if it
// failed: the sandbox goes on then.
func (l *List) Pause(ctx context.Context) error { return l.pauseWith(ctx, false) }

// PauseFiles pauses, and keeps the sandbox's files alone: what runs in it ends, and
// a resume starts it anew on them. Of what is on disk with its memory, for a person, it
// is a fault.ErrConflict.
func (l *List) PauseFiles(ctx context.Context) error { return l.pauseWith(ctx, true) }

func (l *List) pauseWith(ctx context.Context, files bool) error {
	p, err := l.askPause(files)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *List) askPause(files bool) (*pause, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || l.life.Err() != nil:
		return nil, fault.New(fault.ErrConflict, "the sandbox %s has ended", l.cfg.Sandbox)
	case l.paused && l.state == Frozen:
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is paused already", l.cfg.Sandbox)
	case l.pausing != nil && l.pausing.files != files:
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is being paused already, and another part of it is to be kept", l.cfg.Sandbox)
	case l.pausing != nil:
		return l.pausing, nil
	case files && l.state != Running:
		return nil, l.refuseFilesAlone()
	case l.cfg.Body == nil:
		return nil, fault.New(fault.ErrUnavailable, "the sandbox %s can't be paused: its engine can't write sandboxes to disk", l.cfg.Sandbox)
	}
	l.pausing = &pause{files: files, done: make(chan struct{})}
	p := l.pausing
	l.wakeWaiters()
	l.attend()
	return p, nil
}

// refuseFilesAlone refuses to keep the files alone of what is on disk, or on its way there or
// back, for a person.
func (l *List) refuseFilesAlone() error {
	return fault.New(fault.ErrConflict, "the sandbox %s waits for a person and is on disk with its memory; pause it with that, or keep its files alone when it runs", l.cfg.Sandbox)
}

// settlePause ends the pause that was asked for, if there is one. Needs mu.
func (l *List) settlePause(err error) {
	if l.pausing == nil {
		return
	}
	l.pausing.err = err
	close(l.pausing.done)
	l.pausing = nil
}

func (l *List) settled(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settlePause(err)
	l.wakeWaiters()
}

// freezeForPause freezes a running sandbox for a pause, and stays until it has been resumed
// and everything that it is frozen for answered. False ends the tending.
func (l *List) freezeForPause(ctx context.Context) bool {
	faultpoint.Hit(faultpoint.PauseAsked)
	l.mu.Lock()
	files := l.pausing != nil && l.pausing.files
	l.mu.Unlock()
	if err := l.freeze(ctx, true, files); err != nil {
		if l.isOver(ctx) {
			return false // leave tells who asked
		}
		l.cfg.Log.Warn("a sandbox can't be paused", "sandbox", l.cfg.Sandbox, "err", err)
		l.recordChange(Change{To: Running, Pause: true, Files: files, Problem: err.Error()})
		l.settled(fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s can't be paused", l.cfg.Sandbox))
		return true
	}
	l.settled(nil)
	return l.sleepUntilAnswered(ctx)
}

// pauseFrozen pauses what is on disk for a hold already: there is nothing to do
// but to remember it.
func (l *List) pauseFrozen(ctx context.Context) {
	l.mu.Lock()
	files := l.pausing != nil && l.pausing.files
	l.mu.Unlock()
	if files { // asked for just before
		l.settled(l.refuseFilesAlone())
		return
	}
	if err := l.rememberHolds(ctx, true); err != nil {
		l.settled(fault.Wrap(fault.ErrUnavailable, err, "the sandbox %s can't be paused: the keeper does not remember it", l.cfg.Sandbox))
		return
	}
	l.mu.Lock()
	l.paused, l.rested, l.withheld = true, true, nil
	l.mu.Unlock()
	l.recordChange(Change{To: Paused, Approvals: approvals(l.View().Holds), Bytes: l.cfg.Shelf.Keep(l.shelfToken(), l.cfg.Sandbox)})
	l.changeState(Frozen) // shown as Paused now
	l.settled(nil)
}

// Resume ends a pause and returns when the sandbox runs; false if it was not
// paused. One that waits for a person besides stays on disk for that: a
// fault.ErrConflict that names the requests. It goes on when ctx ends.
func (l *List) Resume(ctx context.Context) (bool, error) {
	was, err := l.unpause(ctx)
	if err != nil || !was {
		return was, err
	}
	for {
		v := l.View()
		switch v.State { //nolint:exhaustive // the others are on their way
		case Running:
			return true, nil
		case Paused:
			if why := l.whyPaused(); why != nil {
				return true, fault.Wrap(fault.ErrConflict, why, "the sandbox %s stays paused", l.cfg.Sandbox)
			}
			return true, fault.New(fault.ErrConflict, "the sandbox %s was paused again", l.cfg.Sandbox)
		case Frozen:
			pending, _, err := l.cfg.Queue.Pending(ctx, approvals(v.Holds))
			if err == nil && len(pending) > 0 {
				return true, fault.New(fault.ErrConflict, "the sandbox %s is not paused any more and stays frozen, because it waits for a person: see request %s", l.cfg.Sandbox, strings.Join(pending, ", "))
			}
		}
		if err := l.awaitChange(ctx, v); err != nil {
			return true, err
		}
	}
}

// whyPaused is why nobody but the host has it paused; nil: somebody did.
func (l *List) whyPaused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.withheld
}

// unpause waits for a pause that is under way, and takes it back.
func (l *List) unpause(ctx context.Context) (bool, error) {
	for {
		l.mu.Lock()
		p, was := l.pausing, l.paused && l.state == Frozen
		if p == nil && was {
			l.paused, l.withheld = false, nil
			l.wakeWaiters()
		}
		l.mu.Unlock()
		if p == nil {
			return was, nil
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// awaitChange returns when there is another view; fault.ErrConflict if the sandbox
// has ended.
func (l *List) awaitChange(ctx context.Context, v View) error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return fault.New(fault.ErrConflict, "the sandbox %s has ended", l.cfg.Sandbox)
	}
	select {
	case <-v.Changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.life.Done():
		return l.life.Err()
	}
}
