package records

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
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

// TestWhatIsOwed: of all kinds of records, one that tells what has happened is written later, and before
// the next one; one that must come before what it tells of is not, nor one that somebody else sees to.
func TestWhatIsOwed(t *testing.T) {
	t.Parallel()
	happens := map[audit.Outcome]bool{audit.Finished: true, audit.Failed: true, audit.Aborted: true, audit.Blocked: true, audit.Exceeded: true}
	for _, kind := range audit.Kinds() {
		for _, outcome := range audit.Outcomes() {
			want := happens[outcome]
			switch kind { //nolint:exhaustive // those that somebody else sees to
			case audit.KindCommand, audit.KindFile, audit.KindSandbox:
				want = false
			case audit.KindBuild:
				want = outcome == audit.Failed
			}
			b, log, broken := owing(t)
			broken(true)
			r := audit.Record{Kind: kind, Outcome: outcome, Detail: map[string]string{"name": "a"}}
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
