package records

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// owing is a book whose log takes nothing while broken says so.
func owing(t *testing.T) (b *Book, log *approvaltest.Log, broken func(bool)) {
	t.Helper()
	log = &approvaltest.Log{}
	b = NewBook(Config{Log: log, Run: "run1", Sandbox: "sb1", Policy: func() string { return "" }, Limits: Limits{Records: 10_000, Names: 5_000, Refusals: 10}})
	return b, log, func(is bool) {
		log.FailWhen(func(audit.Record) error {
			if is {
				return io.ErrShortWrite
			}
			return nil
		})
	}
}

// custodians are, for each outcome, whether a record of it tells what has happened, so that the Book keeps
// it; else it must come before what it tells of.
var custodians = map[audit.Outcome]bool{
	audit.Finished: true, audit.Failed: true, audit.Aborted: true, audit.Blocked: true, audit.Exceeded: true, audit.Built: true, audit.Installed: true, audit.Alarm: true,
	audit.Frozen: true, audit.Thawed: true, audit.Paused: true, audit.Resumed: true, audit.Adopted: true, audit.Extended: true,

	audit.Served: false, audit.Asked: false, audit.Shown: false, audit.Withheld: false, audit.Pending: false, audit.WouldDeny: false, audit.WouldHold: false,
	audit.Started: false, audit.Found: false, audit.Approved: false, audit.Denied: false, audit.Expired: false, audit.Superseded: false, audit.Planned: false,
	audit.Snapshotted: false, audit.Restored: false, audit.Used: false, audit.Narrowed: false, audit.Sealed: false, audit.Erased: false, audit.Rotated: false,
}

// TestWhatIsOwed: of all kinds of records, one that tells what has happened is written later, and before
// the next one; one that must come before what it tells of is not, nor one that somebody else sees to.
func TestWhatIsOwed(t *testing.T) {
	t.Parallel()
	for _, kind := range audit.Kinds() {
		for _, outcome := range audit.Outcomes() {
			want, known := custodians[outcome]
			if !known {
				t.Errorf("nobody says who sees to a record %s that the log does not take", outcome)
			}
			if outcome == audit.Finished && (kind == audit.KindSandbox || kind == audit.KindBuild) {
				want = false // a sandbox's end is admission's to keep; a build has not finished
			}
			for event, want := range map[string]bool{"": want, EventRepeats: false} { // which are counted on
				b, log, broken := owing(t)
				broken(true)
				r := audit.Record{Kind: kind, Outcome: outcome, Detail: map[string]string{"name": "a", DetailEvent: event}}
				first, err := b.Append(t.Context(), r)
				if !errors.Is(err, io.ErrShortWrite) || Kept(err) != want || Kept(errors.Join(nil, err)) != want || Kept(errors.Join(err, io.EOF)) {
					t.Errorf("%s %s: %v", kind, outcome, err)
				}
				broken(false)
				if _, err := b.Append(t.Context(), audit.Record{Kind: audit.KindDaemon, Outcome: audit.Started}); err != nil {
					t.Fatal(err)
				}
				all := log.All()
				if got := len(all) == 2 && all[0].Kind == kind && all[0].RequestID == first.RequestID && all[0].Detail[DetailHappened] != ""; got != want || b.Owes() {
					t.Errorf("%s %s: %d records", kind, outcome, len(all))
				}
			}
		}
	}
}

// TestWhoOwesAnEnd: the end of what a record began is owed until the log has it, and then no more.
func TestWhoOwesAnEnd(t *testing.T) {
	t.Parallel()
	b, _, broken := owing(t)
	broken(true)
	ends := []audit.Record{
		{Kind: audit.KindCommand, Outcome: audit.Finished, Detail: map[string]string{DetailCommand: "cmd-1"}},
		{Kind: audit.KindFile, Outcome: audit.Aborted, Detail: map[string]string{DetailBegan: "7"}},
		{Kind: audit.KindTool, Outcome: audit.Failed, Detail: map[string]string{DetailBegan: "8"}},
	}
	owed := func() (all []bool) {
		return []bool{
			b.OwesEnd(audit.KindCommand, 1, "cmd-1"), b.OwesEnd(audit.KindFile, 7, ""), b.OwesEnd(audit.KindTool, 8, ""),
			b.OwesEnd(audit.KindCommand, 1, "cmd-2"), b.OwesEnd(audit.KindFile, 8, ""), b.OwesEnd(audit.KindTool, 7, ""),
		}
	}
	for _, r := range ends {
		if _, err := b.Append(t.Context(), r); !Kept(err) || err == nil {
			t.Fatal(err)
		}
	}
	if got := owed(); !slices.Equal(got, []bool{true, true, true, false, false, false}) {
		t.Errorf("%v", got)
	}
	broken(false)
	if err := b.WriteOwed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := owed(); slices.Contains(got, true) {
		t.Errorf("%v when the log has them", got)
	}
}

// TestOwedIsBounded: the same refusal is kept once and counted, and past the bound the others are.
func TestOwedIsBounded(t *testing.T) {
	t.Parallel()
	b, log, broken := owing(t)
	broken(true)
	refusal := func(name string) audit.Record {
		return audit.Record{Kind: audit.KindNetwork, Outcome: audit.Blocked, Detail: map[string]string{DetailName: name}}
	}
	for i := range maxOwed + 7 {
		for range 3 {
			if _, err := b.Refuse(t.Context(), refusal(fmt.Sprint(i))); !Kept(err) || err == nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.WriteOwed(t.Context()); !errors.Is(err, io.ErrShortWrite) || len(log.All()) != 0 {
		t.Fatalf("INCONCLUSIVE: %v, %d records", err, len(log.All()))
	}
	broken(false)
	for range 2 {
		if err := b.WriteOwed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	counted, dropped := 0, 0
	for _, r := range log.All() {
		if r.Detail[DetailEvent] == EventDropped {
			dropped += r.Count
		} else {
			counted += r.Count
		}
	}
	if counted != 3*maxOwed || dropped != 3*7 || len(log.All()) != maxOwed+1 {
		t.Errorf("%d refusals and %d that were not kept, in %d records", counted, dropped, len(log.All()))
	}
	if r, err := b.Refuse(t.Context(), refusal("0")); err != nil || r.Count != 3 {
		t.Errorf("one that came late is not counted on: %+v %v", r, err)
	}
	if shown := b.Refusals("", 0, nil); len(shown) == 0 {
		t.Error("`cofferdam why` shows none of them")
	}
}
