package admission

import (
	"errors"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// TestRepeatsOutliveTheirSandbox: a sandbox that ends while the log takes some records and others not
// has all of its ends that can be written, and its repeats when the log takes them again, once.
func TestRepeatsOutliveTheirSandbox(t *testing.T) {
	c, log := hosted(t, nil)
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	for range 7 {
		_, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "evil.example"})
		must(t, err)
	}
	a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14"))
	must(t, err)
	if a.Decision.Effect != policy.Allow {
		t.Fatalf("%+v", a)
	}
	log.FailWhen(func(r audit.Record) error {
		if r.Count > 0 {
			return io.ErrShortWrite
		}
		return nil
	})
	if err := c.SandboxEnded(t.Context(), "sb1", "stopped"); !errors.Is(err, io.ErrShortWrite) {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	c.Unregister("sb1")
	counted := func() (repeats, connections, ends int) {
		for _, r := range log.All() {
			switch {
			case r.Outcome == audit.Blocked:
				repeats += max(1, r.Count)
			case r.Outcome == audit.Finished && r.Kind == audit.KindNetwork:
				connections++
			case r.Outcome == audit.Finished && r.Kind == audit.KindSandbox:
				ends++
			}
		}
		return repeats, connections, ends
	}
	if repeats, connections, ends := counted(); repeats != 1 || connections != 1 || ends != 0 {
		t.Errorf("as it ends: %d refusals, %d ends of connections, %d of the sandbox", repeats, connections, ends)
	}
	log.FailWhen(nil)
	for range 2 {
		must(t, c.SandboxLost(t.Context(), "sb1", "stopped"))
	}
	if repeats, connections, ends := counted(); repeats != 7 || connections != 1 || ends != 1 {
		t.Errorf("afterwards: %d refusals, %d ends of connections, %d of the sandbox", repeats, connections, ends)
	}
}
