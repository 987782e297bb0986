package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// TestRefusalsOfACall: what the code of a call is refused is on record as often as it was. A sandbox is
// the control. Of one that is forgotten without an end it is written later.
func TestRefusalsOfACall(t *testing.T) {
	const times = 5
	log := &approvaltest.Log{}
	c := New(Config{Log: log})
	p := parse(t, "version: \"1\"\n")
	refused := func(id string) {
		for range times {
			a, err := c.CallTool(t.Context(), door.ToolAsk{Sandbox: id, Tool: "refund", Arguments: `{}`})
			must(t, err)
			if a.Outcome != door.ToolRefused {
				t.Fatalf("%+v", a)
			}
		}
	}
	counted := func(id string) (n int) {
		for _, r := range log.All() {
			if r.Sandbox == id && r.Kind == audit.KindTool && r.Outcome == audit.Blocked {
				n += max(1, r.Count)
			}
		}
		return n
	}
	must(t, c.Register(Run{Sandbox: "sb1", Run: "r1", Policy: p}))
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	refused("sb1")
	must(t, c.SandboxEnded(t.Context(), "sb1", "over"))
	c.Unregister("sb1")
	if got := counted("sb1"); got != times {
		t.Fatalf("the control has %d refusals on record, not %d", got, times)
	}
	// As package jscall makes one.
	must(t, c.Register(Run{Sandbox: "call-1", Run: "r2", Policy: p}))
	_, err := c.CodeBegins(t.Context(), Code{ID: "call-1", Language: "javascript", Isolation: "wasm", Text: "1"})
	must(t, err)
	refused("call-1")
	must(t, c.CodeEnded(t.Context(), "call-1", CodeEnd{}))
	c.Unregister("call-1")
	if got := counted("call-1"); got != times {
		t.Errorf("a call has %d refusals on record, of %d", got, times)
	}
	must(t, c.Register(Run{Sandbox: "call-2", Run: "r3", Policy: p}))
	refused("call-2")
	c.Unregister("call-2")
	c.WriteOverdue(t.Context())
	if got := counted("call-2"); got != times {
		t.Errorf("what had no end has %d refusals on record, of %d", got, times)
	}
}
