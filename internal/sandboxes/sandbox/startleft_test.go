package sandbox_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestACommandWhoseClientLeftAtItsStartHasItsOwnEnd: a client asks for a command and goes before the guest's agent
// has said yes, as when a copy of the sandbox is being written. The keeper starts the command all the same. So what is on
// record as its end must be its end, and not that it did not start. The control is a client that stays.
func TestACommandWhoseClientLeftAtItsStartHasItsOwnEnd(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"the client stays": false, "the client leaves": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newWorld(t).daemon(t)
			id := d.create(t, sandbox.Request{}).Info().ID
			_, outside := d.folder(t, id)
			k, err := d.world.keeper().Get(t.Context(), id)
			if err != nil || len(k.Pids) == 0 {
				t.Fatal(k, err)
			}
			must(t, unix.Kill(k.Pids[0], unix.SIGSTOP)) // the agent takes its time
			t.Cleanup(func() { _ = unix.Kill(k.Pids[0], unix.SIGCONT) })
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			started := make(chan error, 1)
			go func() {
				script := "echo ran > " + outside("ran") + "; while ! [ -e " + outside("go") + " ]; do sleep 0.01; done; exit 3"
				_, err := d.Start(ctx, id, sandbox.Command{Argv: []string{"/bin/sh", "-c", script}})
				started <- err
			}()
			await(t, "its begin is on record", func() bool { return len(d.commandRecords(t, id)) > 0 })
			await(t, "the keeper has been asked for it", func() bool {
				k, err := d.world.keeper().Get(t.Context(), id)
				return err == nil && len(k.Commands) > 0
			})
			if leaves {
				leave()
				t.Log("the client is told:", <-started)
			}
			must(t, unix.Kill(k.Pids[0], unix.SIGCONT))
			if !leaves {
				must(t, <-started)
			}
			await(t, "it runs, or was ended", func() bool {
				_, err := os.Stat(outside("ran"))
				k, failed := d.world.keeper().Get(t.Context(), id)
				runs := slices.ContainsFunc(k.Commands, func(c keeper.Command) bool { return c.Exit == nil })
				return err == nil || failed == nil && !runs
			})
			if _, err := os.Stat(outside("ran")); err != nil {
				if !leaves {
					t.Fatal("INCONCLUSIVE: it does not run for a client that stays")
				}
				await(t, "that it did not run is on record", func() bool { return len(d.ends(t, id)) > 0 })
				return // it was ended before it did anything, which is as good
			}
			for _, r := range d.ends(t, id) {
				t.Errorf("it runs, and on record is that it ended with %d: %s", *r.Exit, r.Detail["error"])
			}
			must(t, os.WriteFile(outside("go"), nil, 0o644))
			await(t, "its end is on record", func() bool { return len(d.ends(t, id)) > 0 })
			if got := d.ends(t, id)[0]; *got.Exit != 3 && !strings.Contains(got.Detail["signal"], "KILL") {
				t.Errorf("it ended with 3, and on record is %d: %s", *got.Exit, got.Detail["error"])
			}
		})
	}
}

// ends are the ends of a sandbox's commands that are on record.
func (d *daemon) ends(t *testing.T, id string) (all []audit.Record) {
	t.Helper()
	for r, err := range d.log.Records(t.Context(), audit.Filter{Sandbox: id, Kinds: []audit.Kind{audit.KindCommand}}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome == audit.Finished && r.Exit != nil {
			all = append(all, r)
		}
	}
	return all
}
