package records

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// kindsAndOutcomes are all that there are; custodyOf's switches name them, and a linter sees to that.
func kindsAndOutcomes() (kinds []audit.Kind, outcomes []audit.Outcome) {
	kinds = []audit.Kind{
		audit.KindPackage, audit.KindCommand, audit.KindSandbox, audit.KindNetwork, audit.KindDaemon, audit.KindBuild, audit.KindTool, audit.KindFinding,
		audit.KindFile, audit.KindApproval, audit.KindLog,
	}
	outcomes = []audit.Outcome{
		audit.Served, audit.Aborted, audit.Asked, audit.Shown, audit.Built, audit.Installed, audit.Blocked, audit.Withheld, audit.Pending, audit.WouldDeny,
		audit.WouldHold, audit.Failed, audit.Started, audit.Finished, audit.Exceeded, audit.Alarm, audit.Found, audit.Approved, audit.Denied, audit.Expired,
		audit.Superseded, audit.Planned, audit.Frozen, audit.Thawed, audit.Paused, audit.Resumed, audit.Snapshotted, audit.Restored, audit.Adopted,
		audit.Extended, audit.Used, audit.Narrowed, audit.Sealed, audit.Erased, audit.Rotated,
	}
	return kinds, outcomes
}

// cutBook makes the book of a run that its guest has had cut, by refusals.
func cutBook(t *testing.T) (*Book, *approvaltest.Log) {
	t.Helper()
	const most = 3
	log := &approvaltest.Log{}
	b := NewBook(Config{Log: log, Run: "r", Sandbox: "sb", Policy: func() string { return "" }, Limits: Limits{Records: most, Names: 10, Refusals: 10}})
	for i := range most {
		if _, err := b.Refuse(t.Context(), audit.Record{Kind: audit.KindPackage, Outcome: audit.Failed, Reason: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Refuse(t.Context(), audit.Record{Kind: audit.KindPackage, Outcome: audit.Failed, Reason: "one more"}); !errors.Is(err, fault.ErrForbidden) {
		t.Fatalf("INCONCLUSIVE: the run is not cut: %v", err)
	}
	return b, log
}

// TestWhatHasHappenedIsOnRecordOfARunThatIsCut: of each kind and outcome of which the Book has custody, a
// record is taken after the guest has used its records up, unless it is a refusal, which the guest can
// cause at will. Anything that happens only once it is on record is refused.
func TestWhatHasHappenedIsOnRecordOfARunThatIsCut(t *testing.T) {
	kinds, outcomes := kindsAndOutcomes()
	for _, kind := range kinds {
		for _, outcome := range outcomes {
			guests := kind == audit.KindPackage || kind == audit.KindNetwork || kind == audit.KindTool
			for what, c := range map[string]struct {
				r     audit.Record
				taken bool
			}{
				"plain": {
					audit.Record{Kind: kind, Outcome: outcome, Reason: "x"},
					!guests || custodyOf(audit.Record{Kind: kind, Outcome: outcome}) == theBook && outcome != audit.Blocked && (outcome != audit.Failed || kind == audit.KindTool),
				},
				"an alarm": {
					audit.Record{Kind: kind, Outcome: outcome, Reason: "x", Detail: map[string]string{DetailAlarm: "true"}},
					!guests || custodyOf(audit.Record{Kind: kind, Outcome: outcome}) == theBook,
				},
			} {
				b, log := cutBook(t)
				before := len(log.All())
				_, err := b.Append(t.Context(), c.r)
				if taken := err == nil && len(log.All()) == before+1; taken != c.taken || !taken && !errors.Is(err, fault.ErrForbidden) {
					t.Errorf("%s: %s %s: taken: %v (%v)", what, kind, outcome, taken, err)
				}
			}
		}
	}
}

// TestEachQuotaIsApart: whichever a guest uses up, what the others are of is on record. Past that of what
// it plants its run is cut; past that of alarms they are refusals like others.
func TestEachQuotaIsApart(t *testing.T) {
	const most = 3
	of := map[quota]audit.Record{
		ofRequests:  {Kind: audit.KindPackage, Outcome: audit.Blocked},
		ofQuestions: {Kind: audit.KindNetwork, Outcome: audit.Asked},
		ofFinds:     {Kind: audit.KindPackage, Outcome: audit.Installed},
		ofAlarms:    {Kind: audit.KindNetwork, Outcome: audit.Blocked, Detail: map[string]string{DetailAlarm: "true"}},
		free:        {Kind: audit.KindPackage, Outcome: audit.Alarm},
	}
	for filled, filler := range of {
		for other, record := range of {
			log := &approvaltest.Log{}
			b := NewBook(Config{Log: log, Run: "r", Sandbox: "sb", Policy: func() string { return "" }, Limits: Limits{Records: most, Names: 10, Refusals: 10}})
			refused := 0
			for i := range maxAlarms + most + 1 {
				r := filler
				r.Reason = fmt.Sprint("filler ", i)
				if _, err := b.Append(t.Context(), r); err != nil {
					refused++
				}
			}
			if want := map[quota]int{ofRequests: maxAlarms + 1, ofQuestions: maxAlarms + most + 1 - questionsFor*most, ofFinds: maxAlarms + 1, ofAlarms: 1}[filled]; refused != want {
				t.Fatalf("of quota %d %d records are refused, want %d", filled, refused, want)
			}
			record.Reason = "the other"
			_, err := b.Append(t.Context(), record)
			runIsCut := filled == ofRequests || filled == ofFinds || filled == ofAlarms
			refuses := filled == other && filled != free || runIsCut && (other == ofRequests || other == ofQuestions)
			if (err != nil) != refuses {
				t.Errorf("after quota %d is used up, a record of %d: %v", filled, other, err)
			}
		}
	}
}

// TestAQuotaIsReplayed: a daemon that takes a run over counts as the one before did.
func TestAQuotaIsReplayed(t *testing.T) {
	log := &approvaltest.Log{}
	made := func() *Book {
		return NewBook(Config{Log: log, Run: "r", Sandbox: "sb", Policy: func() string { return "" }, Limits: Limits{Records: 1_000, Names: 10, Refusals: 10}})
	}
	before := made()
	kinds, outcomes := kindsAndOutcomes()
	for _, kind := range kinds {
		for _, outcome := range outcomes {
			for _, detail := range []map[string]string{nil, {DetailAlarm: "true"}} {
				if _, err := before.Append(t.Context(), audit.Record{Kind: kind, Outcome: outcome, Detail: detail}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	after := made()
	for _, r := range log.All() {
		after.Replay(r)
	}
	if before.used != after.used {
		t.Errorf("%v before, %v after", before.used, after.used)
	}
}
