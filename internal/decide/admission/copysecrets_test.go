package admission

import (
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// TestACopyKnowsTheValuesOfItsSource: a host that was sent them may answer the copy with them, too.
func TestACopyKnowsTheValuesOfItsSource(t *testing.T) {
	source := &renewed{}
	c := New(Config{Log: &approvaltest.Log{}, Secrets: secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-One", Format: "{secret}"}, Source: source, Keep: time.Hour,
	}}, time.Now)})
	p, err := policy.Parse("p", []byte("network_allowlist: [ api.example ]\ncredentials: { inject: [ { host: api.example, secret: one } ] }\n"))
	must(t, err)
	run := Run{Sandbox: "sb1", Run: "run-sb1", Policy: p}
	must(t, c.Register(run))
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	_, err = c.Secrets(t.Context(), using("api.example", "one"))
	must(t, err)
	must(t, c.Declined(t.Context(), door.DeclinedAsk{HostPort: at("api.example"), Secrets: []string{"one"}}))
	_, err = c.Secrets(t.Context(), using("api.example", "one"))
	must(t, err)
	lineage, err := c.Lineage(t.Context(), "sb1")
	must(t, err)
	run.Sandbox, run.Run, run.Ancestors = "sb2", "run-sb2", lineage.Ancestors
	must(t, c.RegisterCopy(t.Context(), run, lineage.Facts))
	run.Sandbox, run.Run, run.Ancestors = "sb3", "run-sb3", nil
	must(t, c.Register(run))
	for _, sandbox := range []string{"sb2", "sb3"} { // a copy, and another run that gets the secret
		ask := using("api.example", "one")
		ask.Sandbox = sandbox
		got, err := c.Secrets(t.Context(), ask)
		must(t, err)
		for _, want := range []string{"the-token-1", "the-token-2"} {
			if !slices.Contains(got.Others["one"], want) || got.Values["one"] == want {
				t.Errorf("%s: %v, beside %v", sandbox, got.Values, got.Others)
			}
		}
	}
	c.Unregister("sb1")
	if got, err := c.Secrets(t.Context(), door.SecretsAsk{HostPort: door.HostPort{Sandbox: "sb2", Name: "api.example", Port: 443}}); err != nil || len(got.Others["one"]) != 4 {
		t.Errorf("when its source has ended: %v, %v", got.Others, err)
	}
}
