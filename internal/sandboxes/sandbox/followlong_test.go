//go:build long

package sandbox_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestTheNextDaemonSeesToATimeout: a guest that does not end its command in time loses its sandbox, though
// the daemon that started the command is no more. The control is a command without a timeout.
func TestTheNextDaemonSeesToATimeout(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	begin := func(timeout time.Duration) (id string) {
		id = d.create(t, sandbox.Request{}).Info().ID
		_, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"sleep", "1000"}, Timeout: timeout})
		must(t, err)
		k, err := d.world.keeper().Get(t.Context(), id)
		if err != nil || len(k.Pids) == 0 {
			t.Fatal(k, err)
		}
		must(t, unix.Kill(k.Pids[0], unix.SIGSTOP)) // the agent keeps no time any more
		t.Cleanup(func() { _ = unix.Kill(k.Pids[0], unix.SIGCONT) })
		if k, err = d.world.keeper().Get(t.Context(), id); err != nil || k.Commands[0].Exit != nil {
			t.Fatalf("it ended before: %+v, %v", k.Commands, err)
		}
		return id
	}
	without, with := begin(0), begin(5*time.Second)
	d.next(t)
	await(t, "the sandbox of the command with a timeout has ended", func() bool {
		_, err := d.Get(with)
		return err != nil
	})
	if _, err := d.Get(without); err != nil {
		t.Error(err)
	}
}
