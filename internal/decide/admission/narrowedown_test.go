package admission

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	egressrequests "github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// narrowings are what a narrower policy may say of tokenPolicy's secret.
func narrowings() map[string]string {
	const allowed = "network_allowlist: [ { host: api.example, methods: [GET] } ]\n"
	inject := func(entry string) string { return allowed + "credentials: { inject: [ " + entry + " ] }\n" }
	return map[string]string{
		"nothing":        allowed,
		"another port":   inject(`{ host: "api.example:8443", secret: one }`),
		"another header": inject("{ host: api.example, secret: one, header: X-One }"),
		"git alone":      inject("{ host: api.example, secret: one, git: push }"),
		"own is allowed": inject("{ host: api.example, secret: one, git: push, own_credentials: allow }"),
	}
}

// TestANarrowingLetsNoOtherCredentialThrough: a policy that narrows another takes the secret away, and
// does not open the host to a credential of the client's own, nor without TLS: what the policy refuses by
// itself stays refused. The controls: before it is refused, and by a policy that never had the secret it is not.
func TestANarrowingLetsNoOtherCredentialThrough(t *testing.T) {
	for name, document := range narrowings() {
		t.Run(name, func(t *testing.T) { narrowedToOwn(t, document) })
	}
}

func narrowedToOwn(t *testing.T, document string) {
	t.Helper()
	c := lending(&renewed{}, &approvaltest.Log{})
	bare, err := policy.Parse("bare", []byte("network_allowlist: [ { host: api.example, methods: [GET] } ]\n"))
	must(t, err)
	must(t, c.Register(tokenRun(t, "sb1")))
	must(t, c.Register(Run{Sandbox: "sb2", Run: "run-sb2", Policy: bare, Placeholders: map[string]string{"one": "fake-one"}}))
	all := credentials.New(c)
	own := func(sandbox string) error {
		x, err := all.Exchange(t.Context(), egressrequests.Connection{Sandbox: sandbox, Name: "api.example", Port: 443, TLS: true})
		must(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/upload", http.NoBody)
		must(t, err)
		r.Header.Set("X-Api-Key", "sk-attackers-own-0123456789")
		return x.Outgoing(r)
	}
	plain := func() string {
		a, err := c.Credentials(t.Context(), door.CredentialsAsk{HostPort: door.HostPort{Sandbox: "sb1", Name: "api.example", Port: 80}})
		must(t, err)
		return a.Withheld
	}
	if err := own("sb2"); err != nil {
		t.Fatalf("INCONCLUSIVE: by a policy without a secret: %v", err)
	}
	if err := own("sb1"); err == nil || !strings.Contains(err.Error(), "has a credential of its own") {
		t.Fatalf("INCONCLUSIVE: before it is narrowed: %v", err)
	}
	if plain() == "" {
		t.Fatal("INCONCLUSIVE: before it is narrowed, plain HTTP to the host passes")
	}
	narrower, err := policy.Parse("narrower", []byte(document))
	must(t, err)
	must(t, c.NarrowPolicy(t.Context(), "sb1", narrower))
	if err := own("sb1"); err == nil || !strings.Contains(err.Error(), "has a credential of its own") {
		t.Errorf("a request with another credential, once the policy is narrowed: %v", err)
	}
	if plain() == "" {
		t.Error("plain HTTP to the host passes once the policy is narrowed")
	}
}

// TestANarrowingLetsNoSecretIn: what a run's own policy gives is looked for in what comes in, also once
// another policy has taken it away: that opens nothing. The control: before that it is, in a sandbox that
// has used it as little.
func TestANarrowingLetsNoSecretIn(t *testing.T) {
	for name, document := range narrowings() {
		t.Run(name, func(t *testing.T) { narrowedToRead(t, document) })
	}
}

func narrowedToRead(t *testing.T, document string) {
	t.Helper()
	c := New(Config{Log: &approvaltest.Log{}, Secrets: secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}, Source: place(canary), Keep: time.Hour,
	}}, time.Now)})
	for _, sandbox := range []string{"sb1", "sb2", "sb3"} {
		must(t, c.Register(tokenRun(t, sandbox)))
	}
	narrower, err := policy.Parse("narrower", []byte(document))
	must(t, err)
	must(t, c.NarrowPolicy(t.Context(), "sb2", narrower))
	all := credentials.New(c)
	if sent, _ := sentBy(t, all, "sb1", strings.NewReader("")); sent != canary {
		t.Fatalf("INCONCLUSIVE: it leaves with %q", sent)
	}
	_, kept := sentBy(t, all, "sb3", strings.NewReader("last request: "+canary))
	if got := text(t, kept); strings.Contains(got, canary) {
		t.Fatalf("INCONCLUSIVE: not narrowed: %q", got)
	}
	sent, kept := sentBy(t, all, "sb2", strings.NewReader("last request: "+canary))
	if sent != "" {
		t.Fatalf("INCONCLUSIVE: narrowed, it leaves with %q", sent)
	}
	if got := text(t, kept); strings.Contains(got, canary) {
		t.Errorf("narrowed, this comes in: %q", got)
	}
}
