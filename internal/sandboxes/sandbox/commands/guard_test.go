package commands

import (
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// guarded is a table of a sandbox that has been active for so long.
func guarded(active *time.Duration) (t *Table, kept *int) {
	kept = new(int)
	return (&Runner{}).In(Place{
		Info: journal.Info{ID: "sb1"}, Active: func() time.Duration { return *active }, Guarded: func() { *kept++ }, Clients: NewClients(time.Now(), func() {}),
	}), kept
}

// TestAGuardStaysWhatItIs: over any number of daemons, and in copies of copies, a command has as much active time left
// as it had, and never more. The control is one without a time limit.
func TestAGuardStaysWhatItIs(t *testing.T) {
	t.Parallel()
	active := 10 * time.Second
	table, kept := guarded(&active)
	limited, free := &tableCommand{id: "cmd-1"}, &tableCommand{id: "cmd-2"}
	table.holdCommand(limited)
	table.holdCommand(free)
	table.guardCommand(limited, guardTime(time.Minute))
	table.guardCommand(free, guardTime(0))
	whole := time.Minute + timeoutGrace + guestGrace
	if *kept != 1 {
		t.Errorf("the journal is told %d times", *kept)
	}
	left := func(table *Table, id string, want time.Duration) {
		t.Helper()
		got, is := table.leftOf(table.findCommand(id))
		if is != (want != 0) || is && got != want {
			t.Errorf("%s has %v left (%t), want %v", id, got, is, want)
		}
	}
	left(table, "cmd-1", whole)
	left(table, "cmd-2", 0)
	for range 5 { // daemons
		active += 5 * time.Second
		guards := table.Guards()
		next, kept := guarded(&active)
		next.Inherit(guards)
		if got := next.Guards()["cmd-1"]; got != guards["cmd-1"] { // should the journal be written now
			t.Errorf("before they are followed again the guard is %v, and not %v", got, guards["cmd-1"])
		}
		for _, id := range []string{"cmd-1", "cmd-2"} {
			c := &tableCommand{id: id}
			next.holdCommand(c)
			next.guardAgain(c, 0) // no keeper knows the limit of what came with a copy
		}
		next.Inherit(nil)
		if *kept != 0 || len(next.Guards()) != 1 {
			t.Errorf("%d, %v", *kept, next.Guards())
		}
		table = next
	}
	whole -= 25 * time.Second
	left(table, "cmd-1", whole)
	left(table, "cmd-2", 0)
	for range 3 { // copies, each of the one before
		copied := table.Running([]keeper.Command{{ID: "cmd-1"}, {ID: "cmd-2"}}, time.Now())
		if len(copied) != 2 || copied[0].Guard != whole || copied[1].Guard != 0 {
			t.Fatalf("%+v", copied)
		}
		active = 0 // the copy's own
		next, _ := guarded(&active)
		c := &tableCommand{id: "cmd-1"}
		next.holdCommand(c)
		next.guardCommand(c, copied[0].Guard)
		active += 5 * time.Second
		whole -= 5 * time.Second
		next.holdCommand(&tableCommand{id: "cmd-2"})
		left(next, "cmd-1", whole)
		table = next
	}
	active += time.Hour
	if got, is := table.leftOf(table.findCommand("cmd-1")); !is || got > time.Millisecond {
		t.Errorf("past its end it has %v left (%t)", got, is)
	}
	if got := table.guardLeft("cmd-1"); got <= 0 || got > time.Second {
		t.Errorf("past its end a copy has %v", got)
	}
}

// TestAGuardThatTheJournalDoesNotKnow is anew of what the keeper says.
func TestAGuardThatTheJournalDoesNotKnow(t *testing.T) {
	t.Parallel()
	active := time.Hour
	table, kept := guarded(&active)
	c := &tableCommand{id: "cmd-1"}
	table.holdCommand(c)
	table.guardAgain(c, guardTime(time.Minute))
	if left, is := table.leftOf(c); !is || left != guardTime(time.Minute) || *kept != 1 {
		t.Errorf("%v, %t, %d", left, is, *kept)
	}
}

// TestACopysCommandsAreGuarded as they were in its source, whose keeper alone knows their limits, and those of a copy
// that an earlier version has made.
func TestACopysCommandsAreGuarded(t *testing.T) {
	t.Parallel()
	k := &starting{}
	table := k.table(t)
	p, err := policy.Parse("test", []byte("packages: { default: deny }\n"))
	if err != nil {
		t.Fatal(err)
	}
	table.cfg.Door = admission.New(admission.Config{Log: &approvaltest.Log{}})
	if err := table.cfg.Door.Register(admission.Run{Sandbox: "sb1", Run: "r", Policy: p}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.cfg.Door.Unregister("sb1") })
	table.place.Active = func() time.Duration { return 0 }
	table.place.Guarded = func() {}
	table.place.Clients = NewClients(time.Now(), func() {})
	_, err = table.Adopt(t.Context(), "sb0", []Copied{{ID: "cmd-1", TimeoutMS: 60_000, Guard: 5 * time.Second}, {ID: "cmd-2", TimeoutMS: 60_000}, {ID: "cmd-3"}})
	if got := table.Guards(); err != nil || len(got) != 2 || got["cmd-1"] != 5*time.Second || got["cmd-2"] != guardTime(time.Minute) {
		t.Errorf("%v, %v", got, err)
	}
}
