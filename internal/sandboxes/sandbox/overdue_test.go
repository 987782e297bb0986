package sandbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestClockOverRestarts: what is left is counted by the machine's boot time, whatever
// happens to the wall clock; paused time does not count.
func TestClockOverRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pass := w.bootTime()
	d := w.daemon(t)
	runs := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour}})
	rests := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour}})
	if err := d.Pause(t.Context(), rests.Info().ID); err != nil {
		t.Fatal(err)
	}
	pass(20 * time.Minute)
	d.next(t)
	for id, want := range map[string]time.Duration{runs.Info().ID: 40 * time.Minute, rests.Info().ID: time.Hour} {
		s, err := d.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(s.Ends()); left > want || left < want-time.Minute {
			t.Errorf("%s are left, want %s", left, want)
		}
	}
	pass(24 * time.Hour)
	d.next(t)
	await(t, "the time of the one is over", func() bool { return len(d.List()) == 1 })
	d.wantOnly(t, rests.Info().ID)
}

// bootTime has the world's daemons see a time since the boot that only goes on by pass.
func (w *world) bootTime() (pass func(time.Duration)) {
	var since atomic.Int64 // daemons look at it in the background
	since.Store(int64(time.Hour))
	w.Boot = func() (string, time.Duration) { return "this boot", time.Duration(since.Load()) }
	return func(d time.Duration) { since.Add(int64(d)) }
}

// slowMove has every move wait until all ends that are due have been told of.
type slowMove struct {
	sandbox.Journal
	wait func()
}

func (j *slowMove) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	if ev.Reason == "a new daemon took it over" {
		j.wait()
	}
	return j.Journal.Move(ctx, e, ev)
}

// Entries says of all that they are paused, which the new daemon finds not to be so.
func (j *slowMove) Entries(ctx context.Context) ([]sandbox.Entry, error) {
	all, err := j.Journal.Entries(ctx)
	for i := range all {
		all[i].State = sandbox.Paused
	}
	return all, err
}

// TestTimeOverWhileTakenOver: the end of a sandbox whose time was over before it was
// taken over is not told to a daemon that does not know it yet, and so lost.
func TestTimeOverWhileTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pass := w.bootTime()
	d := w.daemon(t)
	d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour}})
	pass(24 * time.Hour)
	var manager *sandbox.Manager
	waited := 0
	w.Made = func(m *sandbox.Manager) { manager = m }
	w.Journal = func(j sandbox.Journal) sandbox.Journal {
		return &slowMove{j, func() { manager.AwaitEnds(); waited++ }}
	}
	d.next(t)
	await(t, "its time is over", func() bool { return len(d.List()) == 0 })
	if waited != 1 {
		t.Errorf("%d sandboxes were taken over while ends were told", waited)
	}
}
