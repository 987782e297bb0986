package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// roleAnew is roleDaemon of one that resumes without memory.
const roleAnew = "sandbox-daemon-anew"

// command is one of a sandbox as the keeper knows it.
func (d *daemon) command(t *testing.T, id, command string) keeper.Command {
	t.Helper()
	all, err := d.Commands(t.Context(), id)
	must(t, err)
	at := slices.IndexFunc(all, func(c keeper.Command) bool { return c.ID == command })
	if at < 0 {
		t.Fatalf("there is no command %s", command)
	}
	return all[at]
}

// waits starts a command that goes on until it is told something.
func (d *daemon) waits(t *testing.T, id string) string {
	t.Helper()
	c, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"/bin/cat"}, Stdin: true})
	must(t, err)
	return c.ID
}

// TestResumeFiles: what was paused with its memory is started anew, once, however many
// ask at the same time; what runs is left alone.
func TestResumeFiles(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{Env: map[string]string{"GIVEN": "word"}})
	id := s.Info().ID
	before := d.waits(t, id)
	must(t, d.Pause(t.Context(), id))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := d.ResumeFiles(t.Context(), id); err != nil {
				t.Error(err)
			}
			wantState(t, s, sandbox.Running)
		})
	}
	all.Wait()
	if exit := d.command(t, id, before).Exit; exit == nil || !strings.Contains(exit.Error, "only its files were kept") {
		t.Errorf("what ran was told %+v", exit)
	}
	during := d.waits(t, id)
	if was, err := d.ResumeFiles(t.Context(), id); was || err != nil || d.command(t, id, during).Exit != nil {
		t.Errorf("of one that runs: %v, %v, %+v", was, err, d.command(t, id, during).Exit)
	}
	paused := 0
	for _, outcome := range d.records(t, id) {
		if outcome == audit.Paused {
			paused++
		}
	}
	if paused != 2 {
		t.Errorf("its records are %v; it was paused with its memory, and once for its files", d.records(t, id))
	}
	must(t, d.PauseFiles(t.Context(), id))
	if was, err := d.ResumeFiles(t.Context(), id); !was || err != nil {
		t.Errorf("of one whose files alone are kept: %v, %v", was, err)
	}
}

// whole is an instance whose files can't be had alone.
type whole struct{ *fake.Instance }

func (whole) FreezeFiles(context.Context, string) error { return errors.New("no") }

// TestResumeFilesThatFails: it is paused with its memory again, and what ran goes on
// when it is resumed so.
func TestResumeFilesThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	d.engine.Wrap = func(i *fake.Instance) engine.Instance { return whole{i} }
	s := d.create(t, sandbox.Request{})
	id := s.Info().ID
	runs := d.waits(t, id)
	must(t, d.Pause(t.Context(), id))
	if _, err := d.ResumeFiles(t.Context(), id); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "on its files alone") {
		t.Errorf("%v", err)
	}
	wantState(t, s, sandbox.Paused)
	if s.FilesAlone() {
		t.Error("its memory is said to be lost")
	}
	if was, err := d.Resume(t.Context(), id); !was || err != nil || d.command(t, id, runs).Exit != nil {
		t.Errorf("resumed: %v, %v, %+v", was, err, d.command(t, id, runs).Exit)
	}
}

// TestKilledInAResumeOfFiles: a daemon that dies between the two parts leaves the
// sandbox running as it was, and nobody was told of another.
func TestKilledInAResumeOfFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := w.crashAs(t, roleAnew, faultpoint.ResumeForFiles)
	w.wantGoesOn(t, faultpoint.ResumeDone, answers)
}
