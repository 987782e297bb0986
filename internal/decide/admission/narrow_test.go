package admission

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// narrowRun is a sandbox whose client closed all but one name.
func narrowRun(t *testing.T, id string) Run {
	t.Helper()
	p, err := policy.Parse("p", []byte("packages: { default: deny }\n"))
	if err != nil {
		t.Fatal(err)
	}
	return Run{Sandbox: id, Run: "run-" + id, Policy: p}
}

func narrowing(t *testing.T, names ...string) policy.Narrowing {
	t.Helper()
	n, err := policy.NewNarrowing(names, []string{policy.Everything}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// rules asks for names and tells by which rule each is refused.
func rules(t *testing.T, c *Controller, sandbox string, names ...string) string {
	t.Helper()
	var rules []string
	for _, name := range names {
		a, err := c.Name(t.Context(), door.NameAsk{Sandbox: sandbox, Name: name})
		if err != nil || a.Answer.Decision.Allowed() {
			t.Fatalf("%s: %+v %v", name, a, err)
		}
		rules = append(rules, a.Answer.Decision.Rule)
	}
	return strings.Join(rules, " ")
}

func TestNarrow(t *testing.T) {
	log := &approvaltest.Log{}
	c := New(Config{Clients: all.Asked, Log: log})
	run := narrowRun(t, "sb1")
	run.Narrowing = narrowing(t, "a.example")
	if err := c.Register(run); err != nil {
		t.Fatal(err)
	}
	if err := c.SandboxStarted(t.Context(), "sb1"); err != nil {
		t.Fatal(err)
	}
	if got := rules(t, c, "sb1", "a.example", "b.example"); got != "network_default network_narrowing" {
		t.Errorf("as it was made: %s", got)
	}
	if err := c.Narrow(t.Context(), "sb1", narrowing(t, "c.example")); err != nil {
		t.Fatal(err)
	}
	if got := rules(t, c, "sb1", "d.example", "c.example"); got != "network_narrowing network_default" {
		t.Errorf("changed: %s", got)
	}
	before := len(log.All())
	if err := c.Narrow(t.Context(), "sb1", narrowing(t, "c.example")); err != nil || len(log.All()) != before {
		t.Errorf("what changes nothing is on record: %v", err)
	}

	// The next daemon has it from the log, and what was taken back, too.
	again := New(Config{Clients: all.Asked, Log: log})
	if err := again.Restore(t.Context(), narrowRun(t, "sb1")); err != nil {
		t.Fatal(err)
	}
	if got := again.Narrowing("sb1"); !got.Equal(narrowing(t, "c.example")) {
		t.Errorf("after a restart: %+v", got)
	}
	if err := again.Narrow(t.Context(), "sb1", policy.Narrowing{}); err != nil {
		t.Fatal(err)
	}
	third := New(Config{Clients: all.Asked, Log: log})
	if err := third.Restore(t.Context(), narrowRun(t, "sb1")); err != nil {
		t.Fatal(err)
	}
	if got := third.Narrowing("sb1"); !got.IsZero() {
		t.Errorf("what was taken back is there after a restart: %+v", got)
	}
}

// TestACopysOwnNarrowing counts, and not what its source's client had given up or
// taken back before.
func TestACopysOwnNarrowing(t *testing.T) {
	h := newHouse(t, Limits{})
	h.start(t)
	for _, n := range []policy.Narrowing{narrowing(t, "a.example"), {}} {
		must(t, h.Narrow(t.Context(), "sb1", n))
	}
	must(t, h.copyAs(t, "sb2", func(r *Run) { r.Narrowing = narrowing(t, "b.example") }))
	if got := h.Narrowing("sb2"); !got.Equal(narrowing(t, "b.example")) {
		t.Errorf("the copy has %+v", got)
	}
}

// TestNarrowNeedsARecord: what can't be recorded is not changed.
func TestNarrowNeedsARecord(t *testing.T) {
	log := &approvaltest.Log{}
	c := New(Config{Clients: all.Asked, Log: log})
	if err := c.Register(narrowRun(t, "sb1")); err != nil {
		t.Fatal(err)
	}
	log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
	if err := c.Narrow(t.Context(), "sb1", narrowing(t)); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	if got := c.Narrowing("sb1"); !got.IsZero() {
		t.Errorf("%+v", got)
	}
	if err := c.Narrow(t.Context(), "sb2", narrowing(t)); err == nil {
		t.Error("an unknown sandbox was narrowed")
	}
	if got := c.Narrowing("sb2"); got.IsZero() {
		t.Error("an unknown sandbox has an open network")
	}
}

// TestNarrowingThatCannotBeRead closes everything.
func TestNarrowingThatCannotBeRead(t *testing.T) {
	var n narrowed
	n.replayRecord(audit.Record{Outcome: audit.Narrowed, Detail: map[string]string{detailNarrowing: "{"}})
	if open, _ := n.getNarrowing().Name("a.example"); open {
		t.Error("it opens")
	}
	n.replayRecord(audit.Record{Outcome: audit.Started})
	if open, _ := n.getNarrowing().Name("a.example"); open {
		t.Error("a record that says nothing of it opens")
	}
}
