package admission

import (
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// TestValuesThatOthersHad: a value that another run had of the same secret, or the source of a copy
// that has ended, may come back to whoever gets that secret, so it is looked for. The controls: a
// sandbox that gets another secret is told of none of these, and none is told of what nobody had.
func TestValuesThatOthersHad(t *testing.T) {
	declared := func(name string) secret.Declared {
		return secret.Declared{Name: name, Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-One", Format: "{secret}"}, Source: &renewed{}, Keep: time.Hour}
	}
	c := New(Config{Log: &approvaltest.Log{}, Secrets: secret.NewBroker([]secret.Declared{declared("one"), declared("two")}, time.Now)})
	of := func(secret string) *policy.Policy {
		p, err := policy.Parse("p", []byte("network_allowlist: [ api.example ]\ncredentials: { inject: [ { host: api.example, secret: "+secret+" } ] }\n"))
		must(t, err)
		return p
	}
	known := func(sandbox, name string) []string {
		t.Helper()
		ask := using("api.example", name)
		ask.Sandbox = sandbox
		got, err := c.Secrets(t.Context(), ask)
		must(t, err)
		return append(got.Others[name], got.Values[name])
	}
	begin := func(sandbox, name string) {
		t.Helper()
		must(t, c.Register(Run{Sandbox: sandbox, Run: "run-" + sandbox, Policy: of(name)}))
		must(t, c.SandboxStarted(t.Context(), sandbox))
	}
	begin("sb1", "one")
	had := known("sb1", "one")
	lineage, err := c.Lineage(t.Context(), "sb1")
	must(t, err)
	begin("sb2", "one")
	beside := known("sb2", "one")
	c.Unregister("sb1")
	must(t, c.RegisterCopy(t.Context(), Run{Sandbox: "sb3", Run: "run-sb3", Policy: of("one"), Ancestors: lineage.Ancestors}, lineage.Facts))
	copied := known("sb3", "one")
	c.Unregister("sb2")
	c.Unregister("sb3")
	begin("sb4", "one") // no run that had one lives
	for who, all := range map[string][]string{"a run beside": beside, "a copy of one that has ended": copied, "a run after all others": known("sb4", "one")} {
		if len(had) != 1 || !slices.Contains(all, had[0]) || len(all) < 2 {
			t.Errorf("%s looks for %q, and another run had %q", who, all, had)
		}
	}
	begin("sb5", "two")
	if all := known("sb5", "two"); len(all) != 1 {
		t.Errorf("who gets another secret looks for %q", all)
	}
}
