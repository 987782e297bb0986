package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testLife: create, exec over the channel, signal, wait, destroy.
func testLife(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	if got := b.runScript("echo out; echo err >&2"); got != "out" {
		t.Errorf("stdout %q", got)
	}
	if r := b.execAs("", "/bin/sh", "-c", "exit 7"); r.exit.Code != 7 {
		t.Errorf("exit %+v, want 7", r.exit)
	}
	if ids, err := s.Engine.List(t.Context()); err != nil || !slices.Contains(ids, b.id) {
		t.Errorf("list %v, %v lacks %s", ids, err, b.id)
	}
	stats, err := b.inst.Stats(t.Context())
	if err != nil && !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("stats: %v", err)
	}
	if err == nil && (stats.MemoryBytes <= 0 || stats.Pids <= 0 || stats.CPUNanos <= 0) {
		t.Errorf("stats of a running sandbox: %+v", stats)
	}
	waited := make(chan engine.Exit, 1)
	go func() {
		exit, err := b.inst.Wait(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- exit
	}()
	for range 2 { // The second finds nothing to do.
		if err := b.inst.Destroy(t.Context()); err != nil {
			t.Fatalf("destroy: %v", err)
		}
	}
	if exit := <-waited; exit.Reason != "destroyed" || exit.OOM {
		t.Errorf("wait after destroy: %+v", exit)
	}
	s.nothingLeft(t, b.id)
	if _, err := s.Engine.Open(t.Context(), b.inst.Handle()); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("open of a destroyed instance: %v", err)
	}
}

// testRestart: a new engine finds the instance by its handle, with a command
// that goes on, and can end it; without the handle it can list and sweep.
func testRestart(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	conn := b.startCommand("before", channel.Exec{ID: "before", Argv: []string{"/bin/sh", "-c", "read line; echo got $line"}, Stdin: true, Dir: "/"})
	defer conn.Close()

	again := s.Reopen()
	inst, err := again.Open(t.Context(), b.inst.Handle())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if err := channel.NewWriter(conn).WriteFrame(channel.FrameStdin, []byte("word\n")); err != nil {
		t.Fatal(err)
	}
	if r := b.collect(conn); r.out != "got word\n" || r.exit.Code != 0 {
		t.Errorf("a command from before: %+v", r)
	}
	if err := inst.Signal(t.Context(), int(unix.SIGSTOP)); err != nil {
		t.Fatalf("freeze: %v", err) // nothing would end the wait
	}
	for b.answers() { // Stopping all of a process's threads takes a moment.
		if t.Context().Err() != nil {
			t.Fatal("a frozen sandbox goes on answering")
		}
	}
	if err := inst.Signal(t.Context(), int(unix.SIGCONT)); err != nil {
		t.Errorf("thaw: %v", err)
	}
	if got := b.runScript("echo thawed"); got != "thawed" {
		t.Errorf("after the thaw: %q", got)
	}
	if err := again.Sweep(t.Context(), b.id); err != nil {
		t.Errorf("sweep: %v", err)
	}
	s.nothingLeft(t, b.id)
	if err := again.Sweep(t.Context(), b.id); err != nil {
		t.Errorf("sweep of nothing: %v", err)
	}
}

// answers tells whether the guest agent answers soon.
func (b *box) answers() bool { return b.answersWithin(200 * time.Millisecond) }

// answersAtLast waits as long as anything may take.
func (b *box) answersAtLast() bool { return b.answersWithin(longestWait) }

func (b *box) answersWithin(wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(b.t.Context(), wait)
	defer cancel()
	_, err := b.Keeper.Call(ctx, b.id, channel.Call{Kind: channel.CallPing})
	return err == nil
}

// testEnds: an instance that ends by itself is noticed, listed until it is
// destroyed, and says why.
func testEnds(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	if err := b.inst.Signal(t.Context(), int(unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	exit, err := b.inst.Wait(ctx)
	if err != nil || exit.Reason != "killed" || exit.OOM || exit.Code != 128+int(unix.SIGKILL) {
		t.Errorf("wait: %+v, %v", exit, err)
	}
	if again, err := b.inst.Wait(ctx); err != nil || again != exit {
		t.Errorf("wait again: %+v, %v", again, err)
	}
	if ids, err := s.Engine.List(t.Context()); err != nil || !slices.Contains(ids, b.id) {
		t.Errorf("an ended instance is not listed: %v, %v", ids, err)
	}
	if _, err := s.Reopen().Open(t.Context(), b.inst.Handle()); err != nil {
		t.Errorf("open of an ended instance: %v", err)
	}
	canceled, stop := context.WithCancel(t.Context())
	stop()
	other := s.createBox(t, func(spec *engine.Spec) { spec.ID += "-2" })
	if _, err := other.inst.Wait(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with a context that has ended: %v", err)
	}
}

// testErrors: what can't be made says why, and leaves nothing.
func testErrors(t *testing.T, s *Subject) {
	t.Helper()
	tests := map[string]struct {
		change func(*engine.Spec)
		want   error
	}{
		"no id":           {func(sp *engine.Spec) { sp.ID = "" }, fault.ErrInvalid},
		"an id of a path": {func(sp *engine.Spec) { sp.ID = "../up" }, fault.ErrInvalid},
		"an absent root":  {func(sp *engine.Spec) { sp.Root.Path = "/absent/root" }, fault.ErrInvalid},
		"an absent mount": {func(sp *engine.Spec) {
			sp.Mounts = append(sp.Mounts, engine.Mount{Source: "/absent/dir", Destination: "/mnt"})
		}, fault.ErrInvalid},
		"no PID 1":        {func(sp *engine.Spec) { sp.Init = nil }, fault.ErrInvalid},
		"an absent PID 1": {func(sp *engine.Spec) { sp.Init = []string{"/absent/init"} }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := s.newSpec(t)
			id := spec.ID
			tc.change(&spec)
			inst, err := s.Engine.Create(t.Context(), spec)
			if err == nil {
				t.Errorf("it was made: %v", inst.Destroy(t.Context()))
			}
			if tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v is not of the category %v", err, tc.want)
			}
			s.nothingLeft(t, id)
		})
	}
	t.Run("an id twice", func(t *testing.T) {
		b := s.createBox(t, nil)
		if _, err := s.Engine.Create(t.Context(), s.Spec(b.id)); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("a second one: %v", err)
		}
		if got := b.runScript("echo first"); got != "first" {
			t.Errorf("the first one says %q", got)
		}
	})
	t.Run("a caller that gave up", func(t *testing.T) {
		spec := s.newSpec(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if inst, err := s.Engine.Create(gone, spec); err == nil {
			t.Errorf("it was made: %v", inst.Destroy(t.Context()))
		}
		s.nothingLeft(t, spec.ID)
	})
}
