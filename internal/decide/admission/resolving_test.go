package admission

import (
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// TestNamesThatAreLookedUp: each is on record before, once, and those that lead nowhere are
// counted, unless the policy has them letter by letter; also after a restart.
func TestNamesThatAreLookedUp(t *testing.T) {
	c, log := hosted(t, nil)
	resolve := func(c *Controller, name string, port int) door.Answer {
		t.Helper()
		a, err := c.Resolving(t.Context(), door.ResolveAsk{Sandbox: "sb1", Name: name, Port: port})
		must(t, err)
		return a
	}
	check := func(c *Controller) {
		t.Helper()
		if a := resolve(c, "one-more.example.org", 8443); a.Decision.Allowed() || a.Decision.Rule != ruleNamesQuota {
			t.Errorf("one more: %+v", a)
		}
		for name, port := range map[string]int{"n3.example.org": 8443, "api.example": 443} {
			if a := resolve(c, name, port); !a.Decision.Allowed() {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
	for i := range 10 { // these exist
		name := fmt.Sprintf("real%d.example.org", i)
		if a := resolve(c, name, 8443); !a.Decision.Allowed() {
			t.Fatalf("%+v", a)
		}
		a, err := c.Connect(t.Context(), connectTo(name, 8443, "93.184.215.14"))
		must(t, err)
		if !a.Decision.Allowed() {
			t.Fatalf("%+v", a)
		}
	}
	for i := range 50 {
		if a := resolve(c, fmt.Sprintf("n%d.example.org", i), 8443); !a.Decision.Allowed() {
			t.Fatalf("%d: %+v", i, a)
		}
	}
	if a := resolve(c, "not-listed.example", 443); a.Decision.Allowed() || a.Decision.Rule == ruleNamesQuota {
		t.Errorf("not listed: %+v", a)
	}
	check(c)
	asked := map[string]int{}
	for _, r := range log.All() {
		if r.Outcome == audit.Asked && r.Kind == audit.KindNetwork {
			asked[r.Detail["name"]]++
		}
	}
	if len(asked) != 61 || asked["n7.example.org"] != 1 || asked["real2.example.org"] != 1 || asked["one-more.example.org"] != 0 {
		t.Errorf("on record are %d: %v", len(asked), asked)
	}
	next := New(Config{Log: log})
	must(t, next.Restore(t.Context(), Run{Sandbox: "sb1", Run: "run-sb1", Policy: parse(t, "network_allowlist: [ api.example, \"*.example.org:8443\" ]\n")}))
	check(next)
}
