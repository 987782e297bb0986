package suspend

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

var errMute = errors.New("the guest does not answer")

// says has the guest answer from now on, or not: nil is an answer.
func (s *stage) says(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = err
}

// wantSilent looks at what is shown of a pause, and at what the next daemon is told.
func (s *stage) wantSilent(shown, kept bool) {
	s.t.Helper()
	v := s.View()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.kept != nil && s.kept.Silent; v.Silent != shown || got != kept {
		s.t.Errorf("%s is shown as silent: %v, want %v; kept: %v, want %v", v.State, v.Silent, shown, got, kept)
	}
}

// TestPauseOfTheSilent: each pause tells whether its guest answered, and only what has
// that guest's memory does.
func TestPauseOfTheSilent(t *testing.T) {
	in(t, "and of one that answers again", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.says(errMute)
		s.paused()
		s.wantSilent(true, true)
		s.resumed()
		s.wantSilent(false, false)
		s.says(nil)
		s.paused()
		s.wantSilent(false, false)
		s.finish()
	})
	in(t, "of one that answers that it will not", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.says(fault.Invalid("the sandbox refused the call"))
		s.paused()
		s.wantSilent(false, false)
		s.finish()
	})
	in(t, "by the daemon before", func(t *testing.T) {
		t.Helper()
		s := watched(t, &Saved{Since: time.Now(), Paused: true, Silent: true})
		s.settle()
		if !s.View().Silent {
			t.Error("it is not told any more")
		}
		s.resumed()
		s.wantSilent(false, false)
		s.finish()
	})
	in(t, "of which only files are kept", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.says(errMute)
		s.wantDone(s.asking(s.PauseFiles), true)
		s.wantState(Paused)
		if s.View().Silent || len(s.clocks) > 0 {
			t.Errorf("of a guest that is no more: %+v, told of its clocks %v", s.View(), s.clocks)
		}
		s.finish()
	})
	in(t, "whose clocks stand still for a hold already", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "a1")
		h := hold("a1")
		h.Freeze = false
		s.Held(h)
		s.settle() // it answers
		s.says(errMute)
		s.wantDone(s.asking(s.Pause), true)
		s.wantSilent(true, true)
		s.finish()
	})
	in(t, "that is on disk for a person", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "a1")
		s.says(errMute)
		s.frozen("a1")
		s.wantSilent(false, true) // nobody may let it go on yet
		s.wantDone(s.asking(func(ctx context.Context) error { return s.Pause(ctx) }), true)
		s.wantSilent(true, true)
		s.finish()
	})
}
