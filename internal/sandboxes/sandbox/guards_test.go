package sandbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
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

// countedJournal counts what is put into it, and takes nothing until it may.
type countedJournal struct {
	sandbox.Journal
	puts atomic.Int64
	may  chan struct{}
}

func (j *countedJournal) Put(ctx context.Context, e sandbox.Entry) error {
	j.puts.Add(1)
	<-j.may
	return j.Journal.Put(ctx, e)
}

// TestTimeLimitsAreWrittenTogether: however many commands with a time limit begin while the journal takes its time, it is
// written once more for all of them, and has them all.
func TestTimeLimitsAreWrittenTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := &countedJournal{may: make(chan struct{})}
	w.Journal = func(of sandbox.Journal) sandbox.Journal { j.Journal = of; return j }
	d := w.daemon(t)
	id := d.create(t, sandbox.Request{}).Info().ID
	const most = 10
	for i := range most {
		_, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"sleep", "1000"}, Timeout: time.Hour})
		must(t, err)
		if i == 0 {
			await(t, "the journal is written", func() bool { return j.puts.Load() > 0 })
		}
	}
	close(j.may)
	await(t, "the journal has them", func() bool { return len(d.guardsOf(t, id)) == most })
	if n := j.puts.Load(); n > 2 {
		t.Errorf("the journal is written %d times for %d commands", n, most)
	}
}
