package keeper

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// TestTrackTakesSomeProcesses: neither none nor more than a starter leaves.
func TestTrackTakesSomeProcesses(t *testing.T) {
	t.Parallel()
	box := &sandbox{id: "box", reaper: newReaper()}
	for _, n := range []int{0, 65} {
		if err := box.trackProcesses(make([]process.ID, n), nil); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%d processes: %v", n, err)
		}
		if err := box.trackProcesses(nil, make([]int, n)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%d numbers: %v", n, err)
		}
	}
}

// TestNoCommandOfAForgottenSandbox is taken: nobody would end it.
func TestNoCommandOfAForgottenSandbox(t *testing.T) {
	t.Parallel()
	box := &sandbox{id: "box"}
	if err := box.reserve(&keptCommand{id: "first"}); err != nil {
		t.Error(err)
	}
	box.forgotten = true
	if err := box.reserve(&keptCommand{id: "second"}); !errors.Is(err, fault.ErrNotFound) || len(box.commands) != 1 {
		t.Errorf("%v; %d commands", err, len(box.commands))
	}
}

// TestACopyIsNotStartedAnew: a guest that is a copy knows of what was before.
func TestACopyIsNotStartedAnew(t *testing.T) {
	t.Parallel()
	s := NewServer(Config{})
	if err := s.thawFresh(&sandbox{id: "box"}, &Launch{ID: "box", Fresh: true, Reset: true, Argv: []string{"/no/such/program"}}); !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}
