package suspend

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// in runs a test with a clock of its own.
func in(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestGrace(t *testing.T) {
	in(t, "a quick answer needs no freeze", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.Held(hold("ap-1"))
		s.pass(grace - time.Millisecond)
		s.q.answer("ap-1")
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.pass(time.Hour)
		s.wantState(Running)
		s.wantChanges()
		if len(s.View().Holds) != 0 || s.body.freezes != 0 {
			t.Errorf("left: %+v, frozen %d times", s.View(), s.body.freezes)
		}
		s.finish()
	})
	in(t, "an answer begins it anew for the others", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1", "ap-2")
		s.Held(hold("ap-1"))
		s.Held(hold("ap-2"))
		s.pass(grace - time.Second)
		s.q.answer("ap-1")
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.pass(grace - time.Second)
		s.wantState(Running)
		s.pass(time.Second)
		s.wantState(Frozen)
		s.finish()
	})
	in(t, "a client that gave up", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.Held(hold("ap-1"))
		s.settle()
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.pass(time.Hour)
		s.wantChanges()
		s.finish()
	})
	in(t, "two requests for one release", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.Held(hold("ap-1"))
		s.Held(hold("ap-1"))
		s.wantDone(s.releasing(hold("ap-1")), true)
		if n := len(s.View().Holds); n != 1 {
			t.Errorf("%d holds are left, want the one of the other request", n)
		}
		s.finish()
	})
	in(t, "a policy that waits", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		h := hold("ap-1")
		h.Freeze = false
		s.Held(h)
		s.pass(time.Hour)
		s.wantState(Running)
		s.wantChanges()
		s.wantDone(s.releasing(h), true)
		s.settle()
		if len(s.clocks) != 2 || !s.clocks[0] || s.clocks[1] {
			t.Errorf("the guest's clocks were told %v, want to stop and to go on", s.clocks)
		}
		s.finish()
	})
}

func TestFreezeAndThaw(t *testing.T) {
	in(t, "one hold", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		if s.kept == nil || len(s.kept.Holds) != 1 || s.kept.Holds[0].Approval != "ap-1" {
			t.Errorf("the keeper remembers %+v", s.kept)
		}
		s.pass(72 * time.Hour)
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Running)
		s.wantChanges(Frozen, Running)
		if got := s.changes[1].Frozen; got != 72*time.Hour {
			t.Errorf("it was frozen for %s", got)
		}
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.settle()
		if s.kept != nil || s.woken != 1 || len(s.clocks) != 2 || s.clocks[1] {
			t.Errorf("kept %v, woken %d, clocks %v", s.kept, s.woken, s.clocks)
		}
		s.finish()
	})
	in(t, "it thaws when the last is answered", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1", "ap-2")
		s.frozen("ap-1", "ap-2")
		s.q.answer("ap-2")
		done := s.releasing(hold("ap-2"))
		s.wantDone(done, false)
		s.wantState(Frozen)
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Running)
		s.wantDone(done, true)
		s.finish()
	})
	in(t, "an answered one does not freeze it again", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		s.q.answer("ap-1")
		s.pass(time.Hour) // its request is not released yet
		s.wantState(Running)
		s.wantChanges(Frozen, Running)
		s.finish()
	})
	in(t, "a gateway that went away", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Released(gone, hold("ap-1")); !errors.Is(err, context.Canceled) {
			t.Errorf("Released: %v", err)
		}
		s.pass(time.Hour)
		s.wantState(Frozen)
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Running)
		if n := len(s.View().Holds); n != 0 {
			t.Errorf("%d holds are left", n)
		}
		s.finish()
	})
	in(t, "a queue that fails keeps it frozen", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		s.q.mu.Lock()
		s.q.broken = errDisk
		s.q.mu.Unlock()
		s.q.answer("ap-1")
		s.pass(time.Hour)
		s.wantState(Frozen)
		s.q.mu.Lock()
		s.q.broken = nil
		s.q.mu.Unlock()
		s.pass(queuePause)
		s.wantState(Running)
		s.finish()
	})
}

func TestWhileFreezing(t *testing.T) {
	freezing := func(t *testing.T) *stage {
		t.Helper()
		s := newStage(t, "ap-1", "ap-2")
		s.body.gate = make(chan struct{})
		s.Held(hold("ap-1"))
		s.pass(grace)
		s.wantState(Freezing)
		return s
	}
	in(t, "an answer", func(t *testing.T) {
		t.Helper()
		s := freezing(t)
		s.q.answer("ap-1")
		done := s.releasing(hold("ap-1"))
		s.wantDone(done, false)
		close(s.body.gate)
		s.settle()
		s.wantState(Running)
		s.wantDone(done, true)
		s.wantChanges(Frozen, Running)
		s.finish()
	})
	in(t, "another hold", func(t *testing.T) {
		t.Helper()
		s := freezing(t)
		s.Held(hold("ap-2"))
		close(s.body.gate)
		s.settle()
		s.wantState(Frozen)
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Frozen)
		s.q.answer("ap-2")
		s.settle()
		s.wantState(Running)
		s.finish()
	})
	in(t, "the client goes away", func(t *testing.T) {
		t.Helper()
		s := freezing(t)
		done := s.releasing(hold("ap-1"))
		close(s.body.gate)
		s.settle()
		s.wantState(Frozen)
		s.wantDone(done, false)
		s.q.answer("ap-1")
		s.settle()
		s.wantDone(done, true)
		s.finish()
	})
	in(t, "the sandbox is destroyed", func(t *testing.T) {
		t.Helper()
		s := freezing(t)
		done := s.releasing(hold("ap-1"))
		s.Close()
		if err := <-done; !errors.Is(err, fault.ErrConflict) {
			t.Errorf("Released: %v", err)
		}
		s.wantChanges()
		s.finish()
	})
	in(t, "the daemon ends", func(t *testing.T) {
		t.Helper()
		s := freezing(t)
		s.end()
		s.settle()
		close(s.body.gate)
		s.work.Wait()
		s.wantState(Frozen)
		s.wantChanges(Frozen)
		if s.kept == nil {
			t.Error("the keeper remembers nothing")
		}
		s.finish()
	})
}

func TestAHoldWhileFrozenIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "ap-1", "ap-2")
		s.frozen("ap-1")
		s.Held(hold("ap-2"))
		s.settle()
		if len(s.kept.Holds) != 2 {
			t.Errorf("the keeper remembers %+v", s.kept)
		}
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Frozen)
		s.q.answer("ap-2")
		s.settle()
		s.wantState(Running)
		s.finish()
	})
}

func TestWhileThawing(t *testing.T) {
	thawing := func(t *testing.T) *stage {
		t.Helper()
		s := newStage(t, "ap-1", "ap-2")
		s.frozen("ap-1")
		s.body.mu.Lock()
		s.body.gate = make(chan struct{})
		s.body.mu.Unlock()
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Thawing)
		return s
	}
	in(t, "another hold freezes it again", func(t *testing.T) {
		t.Helper()
		s := thawing(t)
		s.Held(hold("ap-2"))
		close(s.body.gate)
		s.settle()
		s.wantState(Running)
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.pass(grace)
		s.wantState(Frozen)
		s.wantChanges(Frozen, Running, Frozen)
		s.finish()
	})
	in(t, "the sandbox is destroyed", func(t *testing.T) {
		t.Helper()
		s := thawing(t)
		done := s.releasing(hold("ap-1"))
		s.Close()
		if err := <-done; !errors.Is(err, fault.ErrConflict) {
			t.Errorf("Released: %v", err)
		}
		if len(s.lost) != 0 {
			t.Errorf("lost: %v", s.lost)
		}
		s.finish()
	})
	in(t, "the daemon ends", func(t *testing.T) {
		t.Helper()
		s := thawing(t)
		s.end()
		s.settle()
		close(s.body.gate)
		s.work.Wait()
		s.wantState(Running)
		if s.kept != nil {
			t.Error("the keeper still remembers the freeze")
		}
		s.finish()
	})
}

func TestCloseWhileFrozenAndInGrace(t *testing.T) {
	in(t, "frozen", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		s.finish()
		if s.body.thaws != 0 {
			t.Error("it was thawed to be destroyed")
		}
	})
	in(t, "in its grace", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.Held(hold("ap-1"))
		s.settle()
		s.finish()
	})
	in(t, "between two tries to thaw", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		s.body.badThaw = []error{errDisk}
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Thawing)
		s.finish()
		if len(s.lost) != 0 || s.body.thaws != 1 {
			t.Errorf("lost %v, thawed %d times", s.lost, s.body.thaws)
		}
	})
}
