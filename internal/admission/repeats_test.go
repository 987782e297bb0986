package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
)

// repeating is a sandbox that is refused the same again and again.
type repeating struct {
	*Controller
	t   *testing.T
	log *approvaltest.Log
	run Run
}

func newRepeating(t *testing.T) *repeating {
	t.Helper()
	r := &repeating{t: t, log: &approvaltest.Log{}, run: Run{Sandbox: "sb1", Run: "r1", Policy: parse(t, "version: \"1\"\n")}}
	r.Controller = New(Config{Log: r.log})
	must(t, r.Register(r.run))
	must(t, r.SandboxStarted(t.Context(), "sb1"))
	return r
}

func (r *repeating) refused(times int) {
	r.t.Helper()
	for range times {
		_, err := r.HostRefused(r.t.Context(), door.HostRefusal{Sandbox: "sb1", Name: "evil.example", Port: 443, Rule: "network.host", Reason: "no"})
		must(r.t, err)
	}
}

// another is a daemon that takes the sandbox over.
func (r *repeating) another() {
	r.t.Helper()
	r.Controller = New(Config{Log: r.log})
	must(r.t, r.Restore(r.t.Context(), r.run))
}

// onRecord is how many refusals the log knows, and in how many records.
func (r *repeating) onRecord() (count, of int) {
	for _, rec := range r.log.All() {
		if rec.Kind == audit.KindNetwork && rec.Outcome == audit.Blocked {
			count, of = count+max(1, rec.Count), of+1
		}
	}
	return count, of
}

// TestRepeatsOutliveADaemonThatEndsInOrder: a sandbox goes on behind a daemon that ends as it should (a
// restart of the service, an upgrade, a handover), and is refused the same before and after that. With one
// daemon all are on record, which is the control; a daemon that dies is the other one.
func TestRepeatsOutliveADaemonThatEndsInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(r *repeating)
		want int
	}{
		"one daemon":               {func(*repeating) {}, 6},
		"one that ends in order":   {func(r *repeating) { must(t, r.Summarise(t.Context())); r.another() }, 6},
		"one that ends twice":      {func(r *repeating) { must(t, r.Summarise(t.Context())); must(t, r.Summarise(t.Context())); r.another() }, 6},
		"one that dies":            {(*repeating).another, 2},
		"one that dies after that": {func(r *repeating) { must(t, r.SummariseGrown(t.Context())); r.another() }, 6},
	} {
		r := newRepeating(t)
		r.refused(5)
		c.ends(r)
		r.refused(1)
		must(t, r.SandboxEnded(t.Context(), "sb1", "over"))
		if got, _ := r.onRecord(); got != c.want {
			t.Errorf("%s: %d of 6 refusals are on record, want %d", name, got, c.want)
		}
	}
}

// TestRepeatsAreSummarisedNowAndThen: of what is refused again and again the log knows at least half at
// each time, in few records, and nothing is written where nothing was repeated.
func TestRepeatsAreSummarisedNowAndThen(t *testing.T) {
	r := newRepeating(t)
	refused := 0
	for range 200 {
		r.refused(10)
		refused += 10
		must(t, r.SummariseGrown(t.Context()))
		got, of := r.onRecord()
		if 2*got <= refused || of > 12 {
			t.Fatalf("of %d refusals %d are on record, in %d records", refused, got, of)
		}
		must(t, r.SummariseGrown(t.Context()))
		if _, again := r.onRecord(); again != of {
			t.Fatal("a record was written though nothing was repeated")
		}
	}
}
