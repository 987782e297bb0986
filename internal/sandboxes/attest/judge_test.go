package attest_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest/probe"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// attempts are all that there are.
func attempts() []probe.Attempt {
	return []probe.Attempt{
		probe.Addresses, probe.RawSockets, probe.Interfaces, probe.Name, probe.Metadata, probe.Capabilities, probe.Privileges, probe.OtherUser,
		probe.SystemFiles, probe.Template, probe.Mounts, probe.Clock, probe.Channel, probe.Kernel, probe.ProcessLimit, probe.DiskLimit,
	}
}

// held is the evidence of a sandbox that holds.
func held() attest.Evidence {
	e := attest.Evidence{OutOfMemory: true, Computed: &attest.Computed{Used: 1, Limit: 1, Throttled: 4}, HostKernel: "of the host\n", Untried: map[probe.Attempt]string{}, Missing: map[engine.Control]string{}}
	for _, a := range attempts() {
		e.Words = append(e.Words, probe.Word{Attempt: a, Says: "refused"})
	}
	return e
}

func named(t *testing.T, e attest.Evidence, name string) attest.Control {
	t.Helper()
	for _, c := range attest.Judge(e) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no control %q", name)
	return attest.Control{}
}

// TestEveryControlCanFail: with all evidence each control is proved, without words it is
// not, and each attempt that got through fails exactly one.
func TestEveryControlCanFail(t *testing.T) {
	t.Parallel()
	sound := attest.Report{Controls: attest.Judge(held())}
	if !sound.Holds() || len(sound.Controls) != len(attempts())+2 {
		t.Errorf("%+v", sound.Controls)
	}
	for _, c := range attest.Judge(attest.Evidence{Trouble: []string{"it did not start"}}) {
		if c.Outcome != attest.Failed || !strings.Contains(c.Says, "nobody knows: it did not start") {
			t.Errorf("without a word, %s is %s: %s", c.Name, c.Outcome, c.Says)
		}
	}
	for _, a := range append(attempts(), probe.MemoryLimit, probe.CPULimit) {
		e := held()
		e.Words = append(e.Words, probe.Word{Attempt: a, Got: true, Says: "I am through"})
		var failed []string
		for _, c := range attest.Judge(e) {
			if c.Outcome == attest.Failed && c.Says == "I am through" {
				failed = append(failed, c.Name)
			}
		}
		if len(failed) != 1 || (attest.Report{Controls: attest.Judge(e)}).Holds() {
			t.Errorf("%s got through, and %v failed", a, failed)
		}
	}
}

// TestTheHostIsBelievedFirst: what the host saw fails a control of which the probe says
// that it held.
func TestTheHostIsBelievedFirst(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*attest.Evidence){
		"network by address": func(e *attest.Evidence) { e.Visits = []string{"127.0.0.1:1"} },
		"template":           func(e *attest.Evidence) { e.Changed = []string{"/usr/x"} },
		"kernel":             func(e *attest.Evidence) { e.HostKernel = "refused\n" },
		"memory limit":       func(e *attest.Evidence) { e.OutOfMemory = false },
		"CPU limit":          func(e *attest.Evidence) { e.Computed.Used = 1.9 },
	} {
		e := held()
		change(&e)
		if c := named(t, e, name); c.Outcome != attest.Failed {
			t.Errorf("%s is %s: %s", name, c.Outcome, c.Says)
		}
	}
}

// TestWhatWasNotTried is neither proved nor failed, and says why.
func TestWhatWasNotTried(t *testing.T) {
	t.Parallel()
	e := held()
	e.Missing[engine.ControlMemory] = "no control groups"
	e.OutOfMemory = false
	if c := named(t, e, "memory limit"); c.Outcome != attest.NotApplicable || !strings.Contains(c.Says, "no control groups") {
		t.Errorf("%+v", c)
	}
	e = attest.Evidence{Untried: map[probe.Attempt]string{probe.Name: "a person decides"}}
	if c := named(t, e, "name not listed"); c.Outcome != attest.NotApplicable || c.Says != "a person decides" {
		t.Errorf("%+v", c)
	}
}

// TestTheProcessorsThatATwinHad: held back it is proved, above the limit it failed; below
// the limit nobody knows, and it says so if others may have had the rest.
func TestTheProcessorsThatATwinHad(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		computed *attest.Computed
		want     attest.Outcome
		says     string
	}{
		"held back":     {&attest.Computed{Used: 0.98, Limit: 1, Throttled: 3}, attest.Proved, "3 times; it had 0.98 processors of 1.00"},
		"above":         {&attest.Computed{Used: 1.97, Limit: 1}, attest.Failed, "1.97 processors, and 1.00 is the limit"},
		"above, though": {&attest.Computed{Used: 1.97, Limit: 1, Throttled: 3}, attest.Failed, "1.97 processors"},
		"beside others": {&attest.Computed{Used: 0.7, Limit: 1}, attest.NotApplicable, "busy"},
		"not counted":   {&attest.Computed{Limit: 1}, attest.Failed, "nobody knows"},
		"not looked at": {nil, attest.Failed, "nobody knows"},
	} {
		e := held()
		if e.Computed = c.computed; e.Computed != nil && e.Computed.Unmet() != "" {
			e.Untried[probe.CPULimit] = e.Computed.Unmet()
		}
		if got := named(t, e, "CPU limit"); got.Outcome != c.want || !strings.Contains(got.Says, c.says) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestATwinTakesLittle: its limits are at most the sandbox's, and bounded.
func TestATwinTakesLittle(t *testing.T) {
	t.Parallel()
	small := engine.Limits{CPU: 0.5, MemoryBytes: 1 << 20, DiskBytes: 2 << 20, Pids: 3}
	if got := attest.Lower(small); got != small {
		t.Errorf("%+v", got)
	}
	if got := attest.Lower(engine.Limits{CPU: 64, MemoryBytes: 1 << 40, DiskBytes: 1 << 40, Pids: 1 << 20}); got.CPU > 1 || got.MemoryBytes > 1<<30 || got.DiskBytes > 1<<30 || got.Pids > 256 {
		t.Errorf("%+v", got)
	}
}
