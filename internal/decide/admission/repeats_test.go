package admission

import (
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
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

// TestALogThatTakesNothingIsAskedOnce: of many sandboxes with something to summarise one is tried: with a
// log that hangs the others would each keep the end of the daemon waiting as long. When the log takes records
// again all of it is on record, which is the control.
func TestALogThatTakesNothingIsAskedOnce(t *testing.T) {
	const sandboxes, names = 20, 40
	log := &approvaltest.Log{}
	c := New(Config{Log: log})
	for i := range sandboxes {
		id := fmt.Sprint("sb", i)
		must(t, c.Register(Run{Sandbox: id, Run: "r1", Policy: parse(t, "version: \"1\"\n")}))
		must(t, c.SandboxStarted(t.Context(), id))
		for j := range 2 * names {
			_, err := c.HostRefused(t.Context(), door.HostRefusal{Sandbox: id, Name: fmt.Sprintf("n%d.example", j%names), Port: 443, Rule: "network.host", Reason: "no"})
			must(t, err)
		}
	}
	var tried atomic.Int64
	log.FailWhen(func(audit.Record) error { tried.Add(1); return io.ErrShortWrite })
	if c.Summarise(t.Context()) == nil {
		t.Fatal("INCONCLUSIVE: the log took it")
	}
	if n := tried.Load(); n > names { // of one sandbox some are under way at the same time
		t.Errorf("the log was asked %d times", n)
	}
	log.FailWhen(nil)
	must(t, c.Summarise(t.Context()))
	counted := 0
	for _, r := range log.All() {
		if r.Outcome == audit.Blocked {
			counted += max(1, r.Count)
		}
	}
	if counted != 2*names*sandboxes {
		t.Errorf("%d of %d refusals are on record", counted, 2*names*sandboxes)
	}
}
