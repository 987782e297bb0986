package sandbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// leased makes a sandbox with a lease that runs a command for ever.
func (d *daemon) leased(t *testing.T, lease time.Duration) (s *sandbox.Sandbox, command string) {
	t.Helper()
	s = d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{Lease: lease}})
	c, err := d.Start(t.Context(), s.Info().ID, sandbox.Command{Argv: []string{"/bin/sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c.ID
}

// attach is a client of a command, which reads what comes.
func (d *daemon) attach(t *testing.T, s *sandbox.Sandbox, command string) interface{ CloseWrite() error } {
	t.Helper()
	conn, err := d.Attach(t.Context(), s.Info().ID, command, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		t.Fatalf("%T has no halves", conn)
	}
	return half
}

// TestNoClientFollowsAsTheDaemonDoes: the offset by which the keeper knows the daemon's own following of a
// command, which it does not count, is no client's to ask for.
func TestNoClientFollowsAsTheDaemonDoes(t *testing.T) {
	d := newWorld(t).daemon(t)
	s, command := d.leased(t, 0)
	d.attach(t, s, command) // the control
	conn, err := d.Attach(t.Context(), s.Info().ID, command, keeper.Tail)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a client that the keeper takes for the daemon: %v", err)
	}
}

// endReason is why a sandbox ended, as the log has it.
func (d *daemon) endReason(t *testing.T, id string) string {
	t.Helper()
	filter := audit.Filter{Sandbox: id, Kinds: []audit.Kind{audit.KindSandbox}, Outcomes: []audit.Outcome{audit.Finished}}
	for r, err := range d.log.Records(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		return r.Reason
	}
	return ""
}

// TestLease: a sandbox with a lease ends when nobody is attached to it for that long, though a
// command runs, and across a restart of the daemon; not while somebody is, and not one that
// waits for a person, which is kept for whoever comes back to it, for a day.
func TestLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	const lease, day = 5 * time.Second, 24 * time.Hour
	left, command := d.leased(t, lease)
	half := d.attach(t, left, command)
	stays, command := d.leased(t, lease)
	d.attach(t, stays, command)
	d.attach(t, stays, command)
	holds, _ := d.leased(t, lease)
	d.Held(holds.Info().ID, admission.Hold{Approval: "ap-1", Reason: "it waits"}, false)
	free, _ := d.leased(t, 0)
	paused, _ := d.leased(t, lease)
	if err := d.Pause(t.Context(), paused.Info().ID); err != nil {
		t.Fatal(err)
	}
	if err := half.CloseWrite(); err != nil { // its client is gone; the daemon's writes to it may take long to fail
		t.Fatal(err)
	}
	d.EndLeases()
	d.wantOnly(t, left.Info().ID, stays.Info().ID, holds.Info().ID, free.Info().ID, paused.Info().ID)
	await(t, "the one whose client is gone has ended, and those that wait are kept", func() bool {
		d.EndLeases()
		return len(d.List()) == 4 && holds.Lifetime().Lease == day && paused.Lifetime().Lease == day
	})
	if got := d.endReason(t, left.Info().ID); got != "its client is gone" {
		t.Errorf("on record is %q", got)
	}
	if stays.Lifetime().Lease != lease {
		t.Errorf("the lease of one with a client is %s", stays.Lifetime().Lease)
	}
	d.wantOnly(t, stays.Info().ID, holds.Info().ID, free.Info().ID, paused.Info().ID)

	d.next(t) // with it goes the client's connection
	d.EndLeases()
	d.wantOnly(t, stays.Info().ID, holds.Info().ID, free.Info().ID, paused.Info().ID) // a client has its time to come back
	await(t, "the lease is over after a restart, too", func() bool {
		d.EndLeases()
		return len(d.List()) == 3
	})
	if got := d.endReason(t, stays.Info().ID); got != "its client is gone" {
		t.Errorf("on record is %q", got)
	}
	d.wantOnly(t, holds.Info().ID, free.Info().ID, paused.Info().ID)
	for _, s := range d.List() {
		if got := s.Lifetime().Lease; got != day && s.Info().ID != free.Info().ID {
			t.Errorf("%s has a lease of %s after the restart", s.Info().ID, got)
		}
	}
}

// TestStayingKeepsALease: a client that is there between its commands keeps its sandbox by that, and
// loses it when it is there no more; its staying is no use of the sandbox, which grows idle.
func TestStayingKeepsALease(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	left, _ := d.leased(t, 5*time.Second)
	stays, _ := d.leased(t, 5*time.Second)
	idle := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{Lease: 5 * time.Second, Idle: time.Second}})
	overIdle, over := idle.Stay(), stays.Stay()
	defer overIdle()
	left.Stay()()
	await(t, "the one whose client has left is gone, and the one that nobody uses", func() bool {
		d.EndLeases()
		return len(d.List()) == 1
	})
	d.wantOnly(t, stays.Info().ID)
	over()
	over() // once counts
	await(t, "the other has ended, too", func() bool {
		d.EndLeases()
		return len(d.List()) == 0
	})
	if got := d.endReason(t, stays.Info().ID); got != "its client is gone" {
		t.Errorf("on record is %q", got)
	}
}

// TestALeaseIsNotTheGuestsToRenew: requests of the sandbox that wait for a person and do so no
// longer are no client of it. While one waits, the time does not count.
func TestALeaseIsNotTheGuestsToRenew(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	asks, _ := d.leased(t, 5*time.Second)
	waits, _ := d.leased(t, 5*time.Second)
	hold := admission.Hold{Approval: "ap-1", Reason: "it waits"}
	d.Held(waits.Info().ID, hold, false)
	asked := 0
	await(t, "it has ended, whatever it asked for meanwhile", func() bool {
		d.Held(asks.Info().ID, hold, false)
		if d.Released(t.Context(), asks.Info().ID, hold) == nil { // until it is being ended
			asked++
		}
		d.EndLeases()
		return len(d.List()) == 1
	})
	if asked == 0 {
		t.Error("it never asked for anything")
	}
	if got := d.endReason(t, asks.Info().ID); got != "its client is gone" {
		t.Errorf("on record is %q", got)
	}
	d.wantOnly(t, waits.Info().ID)
}

// TestLeasesThatAreNone: what is asked for is no time, or less than a restart of the daemon.
func TestLeasesThatAreNone(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	for _, lease := range []time.Duration{-time.Second, time.Second, 10_000 * time.Hour} {
		_, err := d.Create(t.Context(), ask(t, sandbox.Request{Lifetime: sandbox.Lifetime{Lease: lease}}))
		category(t, err, fault.ErrInvalid, "lease")
	}
}
