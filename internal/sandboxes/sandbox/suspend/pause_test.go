package suspend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// watched is a stage, of a sandbox that another daemon froze if saved is not nil.
func watched(t *testing.T, saved *Saved, open ...string) *stage {
	t.Helper()
	return stageOn(t, NewShelf(t.TempDir(), Room{Bytes: 1 << 30, Count: 10}), saved, open...)
}

// asking does a thing in the background and returns where its error arrives.
func (s *stage) asking(do func(context.Context) error) chan error {
	done := make(chan error, 1)
	go func() { done <- do(s.t.Context()) }()
	synctest.Wait()
	return done
}

func (s *stage) paused() {
	s.t.Helper()
	s.wantDone(s.asking(s.Pause), true)
	s.wantState(Paused)
}

func (s *stage) resumed() {
	s.t.Helper()
	was, err := s.Resume(s.t.Context())
	if !was || err != nil {
		s.t.Fatalf("resume: %v, %v", was, err)
	}
	s.settle()
	s.wantState(Running)
}

func (s *stage) wantMoves(want ...State) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.moves, want) {
		s.t.Errorf("it moved %v, want %v", s.moves, want)
	}
}

func TestPause(t *testing.T) {
	in(t, "and resume", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.paused()
		if s.kept == nil || !s.kept.Paused || !slices.Equal(s.clocks, []bool{true}) {
			t.Errorf("kept %+v, clocks %v", s.kept, s.clocks)
		}
		s.pass(72 * time.Hour)
		s.wantState(Paused)
		s.resumed()
		s.wantChanges(Paused, Running)
		if c := s.changes[1]; !c.Pause || c.Frozen != 72*time.Hour {
			t.Errorf("%+v", c)
		}
		s.settle()
		if s.kept != nil || s.woken != 1 || !slices.Equal(s.clocks, []bool{true, false}) {
			t.Errorf("kept %v, woken %d, clocks %v", s.kept, s.woken, s.clocks)
		}
		s.wantMoves(Freezing, Paused, Thawing, Running)
		if want := []bool{true, false}; !slices.Equal(s.stills, want) {
			t.Errorf("time stood still %v, want %v", s.stills, want)
		}
		s.paused() // and once more
		s.finish()
	})
	in(t, "twice, and resume of what runs", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		if was, err := s.Resume(t.Context()); was || err != nil {
			t.Errorf("resume of what runs: %v, %v", was, err)
		}
		s.paused()
		if err := s.Pause(t.Context()); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("the second pause: %v", err)
		}
		s.resumed()
		s.finish()
	})
	in(t, "its end", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.paused()
		s.finish()
		if err := s.Pause(t.Context()); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("a pause of what has ended: %v", err)
		}
	})
}

// TestPauseIsRefused: with a reason, and the sandbox goes on.
func TestPauseIsRefused(t *testing.T) {
	in(t, "an engine that can't", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.cfg.Body = nil
		if err := s.Pause(t.Context()); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "engine") {
			t.Error(err)
		}
		s.finish()
	})
	in(t, "no room", func(t *testing.T) {
		t.Helper()
		s := stageOn(t, NewShelf(t.TempDir(), Room{Bytes: 1, Count: 1}), nil)
		if err := s.Pause(t.Context()); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "freeze.max_bytes") {
			t.Error(err)
		}
		s.settle()
		s.wantState(Running)
		s.wantChanges(Running)
		if v := s.View(); v.Note != "" || v.Pausing || !slices.Equal(s.clocks, []bool{true, false}) {
			t.Errorf("%+v, clocks %v", v, s.clocks)
		}
		s.finish()
	})
	in(t, "a full disk", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.body.badFrost = []error{errDisk}
		if err := s.Pause(t.Context()); !errors.Is(err, fault.ErrUnavailable) || !errors.Is(err, errDisk) {
			t.Error(err)
		}
		s.wantState(Running)
		s.wantMoves(Freezing, Running)
		if s.kept != nil {
			t.Errorf("kept %+v", s.kept)
		}
		s.paused()
		s.finish()
	})
	in(t, "several at once are one", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.body.gate = make(chan struct{})
		first, second := s.asking(s.Pause), s.asking(s.Pause)
		close(s.body.gate)
		synctest.Wait()
		s.wantDone(first, true)
		s.wantDone(second, true)
		if s.wantState(Paused); s.body.freezes != 1 {
			t.Errorf("frozen %d times", s.body.freezes)
		}
	})
	in(t, "the end comes first", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.body.gate = make(chan struct{})
		done := s.asking(s.Pause)
		s.finish()
		if err := <-done; !errors.Is(err, fault.ErrConflict) {
			t.Error(err)
		}
	})
}

func TestPauseAndHold(t *testing.T) {
	in(t, "an answer does not thaw what is paused", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "ap-1")
		s.Held(hold("ap-1"))
		s.paused() // before the grace is over
		done := s.releasing(hold("ap-1"))
		s.q.answer("ap-1")
		s.pass(time.Hour)
		s.wantState(Paused)
		s.wantDone(done, false)
		s.resumed()
		s.wantDone(done, true)
		s.finish()
	})
	in(t, "paused when it was frozen already", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "ap-1")
		s.frozen("ap-1")
		s.paused()
		s.q.answer("ap-1")
		s.pass(time.Hour)
		s.wantState(Paused)
		if s.body.freezes != 1 || !s.kept.Paused {
			t.Errorf("frozen %d times, kept %+v", s.body.freezes, s.kept)
		}
		s.resumed()
		s.wantChanges(Frozen, Paused, Running)
		s.wantMoves(Freezing, Frozen, Paused, Thawing, Running)
		s.finish()
	})
	in(t, "resumed with a request open", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "ap-1")
		s.frozen("ap-1")
		s.paused()
		was, err := s.Resume(t.Context())
		if !was || !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "ap-1") {
			t.Errorf("%v, %v", was, err)
		}
		s.pass(time.Hour)
		s.wantState(Frozen)
		if s.kept.Paused {
			t.Error("the keeper remembers a pause that is over")
		}
		s.q.answer("ap-1")
		s.settle()
		s.wantState(Running)
		s.wantMoves(Freezing, Frozen, Paused, Frozen, Thawing, Running)
		s.finish()
	})
	in(t, "asked while it freezes for a hold", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "ap-1")
		s.body.gate = make(chan struct{})
		s.Held(hold("ap-1"))
		s.pass(grace)
		s.wantState(Freezing)
		done := s.asking(s.Pause)
		close(s.body.gate)
		s.settle()
		s.wantDone(done, true)
		s.q.answer("ap-1")
		s.pass(time.Hour)
		s.wantState(Paused)
		s.resumed()
		s.finish()
	})
	in(t, "asked while it waits unfrozen", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "ap-1")
		s.body.badFrost = []error{errDisk}
		s.Held(hold("ap-1"))
		s.pass(grace)
		if s.View().Note == "" {
			t.Fatal("it does not wait unfrozen")
		}
		s.paused()
		s.finish()
	})
}

// TestPauseOutlivesTheDaemon: the next one has it paused, and lets it go on.
func TestPauseOutlivesTheDaemon(t *testing.T) {
	in(t, "for no hold", func(t *testing.T) {
		t.Helper()
		s := watched(t, &Saved{Paused: true})
		s.pass(time.Hour)
		s.wantState(Paused)
		if !slices.Equal(s.stills, []bool{true}) {
			t.Errorf("time stood still %v", s.stills)
		}
		s.resumed()
		s.finish()
	})
	in(t, "and for one that was answered meanwhile", func(t *testing.T) {
		t.Helper()
		s := watched(t, &Saved{Paused: true, Holds: []Hold{hold("ap-1")}})
		s.pass(time.Hour)
		s.wantState(Paused)
		s.resumed()
		s.finish()
	})
}
