package sandbox_test

import (
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// guardsOf is what the journal has of the time limits of a sandbox's commands.
func (d *daemon) guardsOf(t *testing.T, id string) map[string]time.Duration {
	t.Helper()
	entries, err := d.file.Entries(t.Context())
	must(t, err)
	for _, e := range entries {
		if e.Info.ID == id {
			return e.Guards
		}
	}
	t.Fatalf("the journal does not know %s", id)
	return nil
}

// TestAGuardIsOverForAllDaemonsAtOneTime: however many daemons follow each other, a command's time limit is over when
// it was for the first. The control is a command without one.
func TestAGuardIsOverForAllDaemonsAtOneTime(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	id := d.create(t, sandbox.Request{}).Info().ID
	start := func(timeout time.Duration) string {
		c, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"sleep", "1000"}, Timeout: timeout})
		must(t, err)
		return c.ID
	}
	limited, free := start(time.Hour), start(0)
	await(t, "the journal has it", func() bool { return d.guardsOf(t, id)[limited] != 0 })
	until := d.guardsOf(t, id)[limited]
	if until < time.Hour || until > 2*time.Hour {
		t.Errorf("it is over after %v", until)
	}
	for range 3 {
		d.next(t)
		guards := d.guardsOf(t, id)
		if guards[limited] != until || guards[free] != 0 {
			t.Errorf("they are over after %v, and not after %v", guards, until)
		}
	}
}
