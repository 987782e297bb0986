package suspend

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestThawFails(t *testing.T) {
	in(t, "three times, then not", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		s.body.badThaw = []error{errDisk, errDisk, errDisk}
		s.q.answer("ap-1")
		s.pass(time.Minute)
		s.wantState(Running)
		if len(s.lost) != 0 {
			t.Errorf("lost: %v", s.lost)
		}
		s.finish()
	})
	in(t, "for good", func(t *testing.T) {
		t.Helper()
		s := newStage(t, "ap-1")
		s.frozen("ap-1")
		s.body.badThaw = []error{errDisk, errDisk, errDisk, errDisk}
		s.q.answer("ap-1")
		s.pass(time.Minute)
		if len(s.lost) != 1 || !strings.Contains(s.lost[0], errDisk.Error()) || s.body.thaws != 4 {
			t.Errorf("lost: %v after %d tries", s.lost, s.body.thaws)
		}
		s.wantState(Thawing)
		s.finish()
	})
}

// TestWhatMayNotBeShownStaysPaused: when the answer comes, the host has something in what a sandbox shows that nobody may be shown.
// It keeps what it has and stays paused, in the next daemon, too; a resume says why. Once that is gone it goes on.
func TestWhatMayNotBeShownStaysPaused(t *testing.T) {
	for name, hidden := range map[string]error{"a mount": fault.New(fault.ErrConflict, "a /proc is mounted below it"), "nobody can look": errDisk} {
		in(t, name, func(t *testing.T) {
			t.Helper()
			s := newStage(t, "ap-1")
			s.frozen("ap-1")
			s.hidden = hidden
			s.q.answer("ap-1")
			s.pass(time.Minute)
			s.wantState(Paused)
			if len(s.lost) != 0 || s.body.thaws != 0 || s.kept == nil || !s.kept.Paused {
				t.Errorf("lost: %v, thawed %d times, kept %+v", s.lost, s.body.thaws, s.kept)
			}
			if c := s.changes[len(s.changes)-1]; c.To != Paused || !strings.Contains(c.Problem, hidden.Error()) {
				t.Errorf("on record: %+v", c)
			}
			if was, err := s.Resume(t.Context()); !was || !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), hidden.Error()) {
				t.Errorf("a resume meanwhile: %v %v", was, err)
			}
			s.wantState(Paused)
			s.mu.Lock()
			s.hidden = nil
			s.mu.Unlock()
			if was, err := s.Resume(t.Context()); !was || err != nil {
				t.Errorf("a resume: %v %v", was, err)
			}
			s.wantState(Running)
			if len(s.lost) != 0 || s.body.thaws != 1 {
				t.Errorf("lost: %v, thawed %d times", s.lost, s.body.thaws)
			}
			s.finish()
		})
	}
}

func TestFreezeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "ap-1")
		s.body.badFrost = []error{errDisk}
		s.Held(hold("ap-1"))
		s.pass(time.Hour)
		s.wantState(Running)
		s.wantChanges(Running)
		if !strings.Contains(s.changes[0].Problem, errDisk.Error()) || s.View().Note == "" || s.body.freezes != 1 || s.kept != nil {
			t.Errorf("changes %+v, note %q, frozen %d times, kept %v", s.changes, s.View().Note, s.body.freezes, s.kept)
		}
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.settle()
		if s.View().Note != "" {
			t.Error("the note stays though nothing is waited for")
		}
		s.q.open["ap-2"] = true
		s.frozen("ap-2") // the next hold has a try of its own
		s.finish()
	})
}

func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := NewShelf(t.TempDir(), Room{Bytes: 1 << 30, Count: 1})
		if err := shelf.takeRoom("", "sb-0", 1); err != nil {
			t.Fatal(err)
		}
		s := stageOn(t, shelf, nil, "ap-1")
		s.Held(hold("ap-1"))
		s.pass(grace)
		s.wantState(Running)
		s.wantChanges(Running)
		if s.View().Note != noRoom || !strings.Contains(s.changes[0].Problem, "max_count") {
			t.Errorf("note %q, changes %+v", s.View().Note, s.changes)
		}
		s.pass(3 * roomPause)
		s.wantChanges(Running) // said once
		if err := shelf.Drop("sb-0"); err != nil {
			t.Fatal(err)
		}
		s.pass(roomPause + grace)
		s.wantState(Frozen)
		s.finish()
	})
}

func TestShelf(t *testing.T) {
	dir := t.TempDir()
	for name, room := range map[string]Room{
		"freeze.max_bytes": {Bytes: 1 << 20, Count: 9},
		"freeze.max_count": {Bytes: 1 << 30},
		"freeze.reserve":   {Bytes: 1 << 40, Count: 9, Reserve: 1 << 62},
	} {
		err := NewShelf(dir, room).takeRoom("", "sb-1", 2<<20)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shelf := NewShelf(dir, Room{Bytes: 1 << 20, Count: 9})
	for _, id := range []string{"sb-1", "sb-2"} {
		if err := os.Mkdir(shelf.Path(id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(shelf.Path(id), "pages"), make([]byte, 600<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if size := shelf.Keep("", "sb-1"); size < 600<<10 || size > 700<<10 {
		t.Errorf("an image of 600 KiB takes %d bytes", size)
	}
	if shelf.takeRoom("", "sb-3", 600<<10) == nil {
		t.Error("what lies on the shelf takes no room")
	}
	if err := shelf.Sweep(func(id string) bool { return id == "sb-2" }); err != nil {
		t.Fatal(err)
	}
	if shelf.Has("sb-1") || !shelf.Has("sb-2") {
		t.Error("the sweep took the wrong image")
	}
	if err := shelf.takeRoom("", "sb-3", 600<<10); err != nil {
		t.Errorf("a dropped image takes room: %v", err)
	}
}

func TestTakeOver(t *testing.T) {
	saved := &Saved{Holds: []Hold{hold("ap-1"), hold("ap-2")}}
	in(t, "still pending", func(t *testing.T) {
		t.Helper()
		s := stageOn(t, NewShelf(t.TempDir(), Room{}), saved, "ap-2")
		s.pass(time.Hour)
		s.wantState(Frozen)
		if n := len(s.View().Holds); n != 2 {
			t.Errorf("%d holds", n)
		}
		s.q.answer("ap-2")
		s.settle()
		s.wantState(Running)
		s.wantChanges(Running)
		if len(s.View().Holds) != 0 || len(s.clocks) != 1 || s.clocks[0] {
			t.Errorf("holds %v, clocks %v", s.View().Holds, s.clocks)
		}
		s.finish()
	})
	in(t, "answered meanwhile", func(t *testing.T) {
		t.Helper()
		s := stageOn(t, NewShelf(t.TempDir(), Room{}), saved)
		s.settle()
		s.wantState(Running)
		s.finish()
	})
	in(t, "destroyed", func(t *testing.T) {
		t.Helper()
		s := stageOn(t, NewShelf(t.TempDir(), Room{}), saved, "ap-1")
		s.settle()
		s.finish()
	})
}

func TestWithTimeoutCountsActiveTimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "ap-1", "ap-2")
		ctx, cancel := s.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.pass(50 * time.Second)
		s.frozen("ap-1")
		s.pass(24 * time.Hour)
		s.q.answer("ap-1")
		s.settle()
		s.wantDone(s.releasing(hold("ap-1")), true)
		s.pass(9 * time.Second)
		if ctx.Err() != nil {
			t.Fatal("the time was over before the sandbox had been active for so long")
		}
		s.pass(time.Second)
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Fatalf("after a minute: %v", context.Cause(ctx))
		}
		s.finish()
	})
}

func TestSteadily(t *testing.T) {
	s := newStage(t, "ap-1")
	defer s.finish()
	s.cfg.After = 0
	inside, leave := make(chan struct{}), make(chan struct{})
	go func() { _ = s.Steadily(t.Context(), func() { close(inside); <-leave }) }()
	<-inside
	s.Held(hold("ap-1"))
	if got := s.View().State; got != Running {
		t.Fatalf("it is %s while something must be steady", got)
	}
	close(leave)
	for v := s.View(); v.State != Frozen; v = s.View() {
		<-v.Changed
	}
	done := make(chan struct{})
	go func() { _ = s.Steadily(t.Context(), func() { close(done) }) }()
	s.q.answer("ap-1")
	<-done
	if got := s.View().State; got != Running {
		t.Fatalf("something ran steadily while it was %s", got)
	}
}

// TestAnyOrder: whatever happens in whatever order, in the end everybody has been
// let go, and the sandbox runs.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			ids := []string{"ap-1", "ap-2", "ap-3"}
			s := newStage(t, ids...)
			defer s.finish()
			done := make(chan error, 100)
			waiting := s.happen(rand.New(rand.NewPCG(seed, 7)), ids, done)
			for _, id := range ids {
				s.q.answer(id)
			}
			s.pass(10 * time.Minute)
			if len(s.lost) > 0 { // four thaws in a row failed: that is right
				return
			}
			for range waiting {
				select {
				case err := <-done:
					if err != nil {
						t.Fatalf("seed %d: Released: %v", seed, err)
					}
				default:
					t.Fatalf("seed %d: somebody still waits; %+v", seed, s.View())
				}
			}
			s.wantState(Running)
			if v := s.View(); len(v.Holds) > 0 || s.body.frozen {
				t.Fatalf("seed %d: left are %+v", seed, v)
			}
		})
	}
}

// happen lets 20 things happen, and returns how many of them wait.
func (s *stage) happen(rnd *rand.Rand, ids []string, done chan<- error) (waiting int) {
	for range 20 {
		id := ids[rnd.IntN(len(ids))]
		switch rnd.IntN(4) {
		case 0, 1:
			s.Held(hold(id))
			waiting++
			timeout := time.Duration(rnd.IntN(20)) * time.Second
			go func() { done <- s.waitAsTheDoorDoes(id, timeout) }()
		case 2:
			s.q.answer(id)
		case 3:
			s.body.mu.Lock()
			s.body.badFrost = append(s.body.badFrost, []error{nil, errDisk}[rnd.IntN(2)])
			s.body.badThaw = append(s.body.badThaw, []error{nil, errDisk}[rnd.IntN(2)])
			s.body.mu.Unlock()
		}
		s.pass(time.Duration(rnd.IntN(4)) * time.Second)
	}
	return waiting
}

// waitAsTheDoorDoes releases a hold when it is answered, sooner where its client
// loses patience.
func (s *stage) waitAsTheDoorDoes(id string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	for ctx.Err() == nil {
		pending, changed, err := s.q.Pending(ctx, []string{id})
		if err != nil || len(pending) == 0 {
			break
		}
		awaitClosed(ctx, changed, 0)
	}
	return s.Released(s.t.Context(), hold(id))
}

func TestTakeOverRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "ap-1")
		s.List = TakeOverRunning(t.Context(), s.cfg)
		s.settle()
		if len(s.clocks) != 1 || s.clocks[0] {
			t.Errorf("the guest's clocks were told %v, want to go on", s.clocks)
		}
		s.frozen("ap-1")
		s.finish()
	})
}
