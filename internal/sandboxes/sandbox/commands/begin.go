package commands

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// maxStarting is how many starts of a sandbox may be under way, those that nobody waits for any more
// included: as many as the keeper has under way with one guest.
const maxStarting = 128

// start is a process that the keeper is asked for.
type start struct {
	exec    channel.Exec
	options keeper.ExecOptions
	// began is called once if the process runs, or may run: its real end is waited for from then on.
	// Where nobody has waited for the start to its end, unwanted, it is being killed already; nil: nothing
	// is to be done.
	began func(unwanted bool)
	// failed is called once if the process was never started; nil: nothing is to be done.
	failed func(error)
}

// The owner of the outcome of a start, which is decided once.
const (
	undecided int32 = iota
	answered        // the caller, who waited for it
	left            // nobody: the caller went before
)

// beginProcess has the keeper start a process, and returns when the guest has agreed to it. All that starts
// processes goes through it: that a context ends says nothing of what was begun under it, as the keeper
// starts what it was asked for whoever still waits. So the keeper is asked for as long as this daemon
// lives, and what came of it is told to began or failed. If begin returns an error though the process
// may run, which mayRun tells, it is being killed.
//
// A caller whose ctx ends is not kept waiting. The starts that it leaves behind are bounded by maxStarting and end
// when the guest has answered, or with the sandbox.
func (t *Table) beginProcess(ctx context.Context, s start) (mayRun bool, err error) {
	if err := t.acquireStart(); err != nil {
		s.failStart(err)
		return false, err
	}
	var outcome atomic.Int32
	type result struct {
		mayRun bool
		err    error
	}
	told := make(chan result, 1)
	safego.In(t.group, func() {
		r := result{mayRun: true, err: safego.ErrLost}
		defer func() { told <- r }()
		defer t.releaseStart()
		r.err = t.cfg.Keeper.Exec(t.life, t.place.Info.ID, s.exec, s.options)
		switch {
		case r.err == nil:
			t.tellBegun(s, !outcome.CompareAndSwap(undecided, answered))
		case !keeper.Unanswered(r.err):
			r.mayRun = false
			s.failStart(r.err)
		case t.life.Err() == nil: // else the daemon ends; its successor finds the process with the keeper
			t.tellBegun(s, true)
		}
	})
	select {
	case r := <-told:
		return r.mayRun, r.err
	case <-ctx.Done():
		if outcome.CompareAndSwap(undecided, left) {
			return true, context.Cause(ctx)
		}
		r := <-told
		return r.mayRun, r.err
	}
}

// tellBegun tells of a process that runs, or may run, and kills it if nobody wants it.
func (t *Table) tellBegun(s start, unwanted bool) {
	if s.began != nil {
		s.began(unwanted)
	}
	if unwanted {
		t.killSurely(s.exec.ID, "nobody waits for its start any more")
	}
}

func (s start) failStart(err error) {
	if s.failed != nil {
		s.failed(err)
	}
}

// acquireStart counts a start, which releaseStart ends.
func (t *Table) acquireStart() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.starting >= maxStarting {
		return fault.New(fault.ErrUnavailable, "%d commands of the sandbox %s are being started already, and its agent has answered none of them; wait for one", maxStarting, t.place.Info.ID)
	}
	t.starting++
	return nil
}

func (t *Table) releaseStart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting--
}

// killSurely kills a process with all that it started, and returns at once. A kill that nobody
// confirmed is tried again, until the process, its sandbox or this daemon has ended: that a sandbox
// stands still, or that its agent is slow, is no end. why is for the log. One that is being killed so
// is left to that: many may find that it has to be.
func (t *Table) killSurely(id, why string) {
	if !t.beginKill(id) {
		return
	}
	safego.In(t.group, func() {
		defer t.endKill(id)
		for told := false; ; told = true {
			err := t.killNow(id)
			if err == nil {
				return
			}
			if !told && t.life.Err() == nil {
				t.cfg.Log.Error("a command was killed, and nobody confirmed that: it may run on; it is tried again until it has ended, or its sandbox", "sandbox", t.place.Info.ID, "command", id, "why", why, "err", err)
			}
			select {
			case <-time.After(askAgain):
			case <-t.life.Done():
				return
			}
		}
	})
}

// beginKill tells whether nobody kills a process surely, and notes that somebody does until endKill.
func (t *Table) beginKill(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.killing[id] {
		return false
	}
	t.killing[id] = true
	return true
}

func (t *Table) endKill(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.killing, id)
}

// killNow kills a process once; nil: it is dead, or its sandbox is.
func (t *Table) killNow(id string) error {
	switch state := t.place.State(); {
	case state.Ends():
		return nil
	case state == journal.Paused || state == journal.Frozen:
		return ErrStill
	}
	signal, err := json.Marshal(channel.Signal{Name: "KILL", Tree: true})
	if err != nil {
		return err
	}
	err = t.cfg.Keeper.Send(t.life, t.place.Info.ID, id, channel.FrameSignal, signal)
	if err == nil || errors.Is(err, fault.ErrNotFound) || t.hasEnded(id) {
		return nil
	}
	return err
}

// hasEnded tells whether the keeper says that a process has ended, or knows nothing of it any more.
func (t *Table) hasEnded(id string) bool {
	k, err := t.cfg.Keeper.Get(t.life, t.place.Info.ID)
	if err != nil {
		return errors.Is(err, fault.ErrNotFound)
	}
	for _, c := range k.Commands {
		if c.ID == id {
			return c.Exit != nil
		}
	}
	return true
}
