package suspend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestPauseFiles(t *testing.T) {
	in(t, "and resume", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.wantDone(s.asking(s.PauseFiles), true)
		s.wantState(Paused)
		if v := s.View(); !v.Files || s.kept == nil || !s.kept.Files || s.body.bare != 1 {
			t.Errorf("%+v, kept %+v, %d without memory", v, s.kept, s.body.bare)
		}
		s.resumed()
		s.wantChanges(Paused, Running)
		if !s.changes[0].Files || !s.changes[1].Files || s.anew != 1 || s.woken != 0 || s.View().Files {
			t.Errorf("%+v, begun anew %d times, woken %d times", s.changes, s.anew, s.woken)
		}
		s.paused() // with memory
		if v := s.View(); v.Files || s.kept.Files || s.body.bare != 1 {
			t.Errorf("a pause with memory after one without: %+v, kept %+v", v, s.kept)
		}
		s.finish()
	})
	in(t, "by the daemon before", func(t *testing.T) {
		t.Helper()
		s := watched(t, &Saved{Since: time.Now(), Paused: true, Files: true})
		s.settle()
		s.wantState(Paused)
		s.resumed()
		if s.anew != 1 || s.woken != 0 {
			t.Errorf("begun anew %d times, woken %d times", s.anew, s.woken)
		}
		s.finish()
	})
	in(t, "of one whose client waits", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "a1")
		h := hold("a1")
		h.Freeze = false
		s.Held(h)
		s.settle()
		s.wantDone(s.asking(s.PauseFiles), true)
		s.Held(hold("a1")) // was on its way when the guest ended
		if v := s.View(); len(v.Holds) > 0 || len(s.kept.Holds) > 0 {
			t.Errorf("it waits for %v, kept %v; nobody is there who does", v.Holds, s.kept.Holds)
		}
		s.resumed() // though the request is pending
		s.finish()
	})
	in(t, "that fails", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.body.badFrost = []error{errDisk}
		done := s.asking(s.PauseFiles)
		if err := <-done; !errors.Is(err, fault.ErrUnavailable) || !errors.Is(err, errDisk) {
			t.Errorf("%v", err)
		}
		s.wantState(Running)
		if s.View().Files || s.kept != nil {
			t.Errorf("kept %+v", s.kept)
		}
		s.finish()
	})
	in(t, "that can't begin anew", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.wantDone(s.asking(s.PauseFiles), true)
		s.badAnew = errDisk
		resumed := s.asking(func(ctx context.Context) error { _, err := s.Resume(ctx); return err })
		s.settle()
		s.mu.Lock()
		lost := slices.Clone(s.lost)
		s.mu.Unlock()
		if len(lost) != 1 || !strings.Contains(lost[0], "can't be used") {
			t.Errorf("lost: %q", lost)
		}
		s.finish()
		if err := <-resumed; !errors.Is(err, fault.ErrConflict) {
			t.Errorf("the resume: %v", err)
		}
	})
	in(t, "of what is frozen", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil, "a1")
		s.frozen("a1")
		if err := s.PauseFiles(t.Context()); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "with its memory") {
			t.Errorf("%v", err)
		}
		s.wantState(Frozen)
		s.finish()
	})
	in(t, "while it is paused with memory", func(t *testing.T) {
		t.Helper()
		s := watched(t, nil)
		s.body.gate = make(chan struct{})
		with := s.asking(s.Pause)
		if err := s.PauseFiles(t.Context()); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "another part") {
			t.Errorf("%v", err)
		}
		close(s.body.gate)
		s.settle()
		s.wantDone(with, true)
		s.wantState(Paused)
		s.finish()
	})
}
