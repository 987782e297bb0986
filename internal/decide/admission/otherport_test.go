package admission

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	egressrequests "github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// TestAHostsOtherPortTakesNoOtherCredential: a host that gets a secret gets no other credential, on none
// of the ports on which it is listed. The controls: on the port of the secret it gets none, and on the
// other one a request without any leaves.
func TestAHostsOtherPortTakesNoOtherCredential(t *testing.T) {
	c := lending(&renewed{}, &approvaltest.Log{})
	p, err := policy.Parse("p", []byte("network_allowlist: [ \"api.example:443\", \"api.example:8443\" ]\ncredentials: { inject: [ { host: \"api.example:443\", secret: one } ] }\n"))
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p, Placeholders: map[string]string{"one": "fake-one"}}))
	all := credentials.New(c)
	send := func(port int, key string) error {
		x, err := all.Exchange(t.Context(), egressrequests.Connection{Sandbox: "sb1", Name: "api.example", Port: port, TLS: true})
		must(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/upload", http.NoBody)
		must(t, err)
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		return x.Outgoing(r)
	}
	if !p.Requests().Judged("api.example", 8443) {
		t.Fatal("INCONCLUSIVE: nobody reads the requests on the other port")
	}
	if err := send(443, "sk-attackers-own-0123456789"); err == nil || !strings.Contains(err.Error(), "has a credential of its own") {
		t.Fatalf("INCONCLUSIVE: on the secret's port: %v", err)
	}
	if err := send(8443, ""); err != nil {
		t.Fatalf("INCONCLUSIVE: on the other one, without any: %v", err)
	}
	if err := send(8443, "sk-attackers-own-0123456789"); err == nil {
		t.Error("on the host's other port a request with another credential leaves")
	}
}

// TestAHostsOtherPortTakesNothingInTheSecretsPlace: the header in which the host takes its secret, whatever it is
// called, holds a credential on its other port as well, as its declaration says. The control: at another
// host that header says nothing.
func TestAHostsOtherPortTakesNothingInTheSecretsPlace(t *testing.T) {
	c := New(Config{Log: &approvaltest.Log{}, Secrets: secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-Door", Format: exchange.Variable}, Source: place(canary), Keep: time.Hour,
	}}, time.Now)})
	p, err := policy.Parse("p", []byte("network_allowlist: [ \"api.example:443\", \"api.example:8443\", { host: other.example, methods: [GET] } ]\ncredentials: { inject: [ { host: \"api.example:443\", secret: one } ] }\n"))
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p, Placeholders: map[string]string{"one": "fake-one"}}))
	send := func(host string, port int) error {
		x, err := credentials.New(c).Exchange(t.Context(), egressrequests.Connection{Sandbox: "sb1", Name: host, Port: port, TLS: true})
		must(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/upload", http.NoBody)
		must(t, err)
		r.Header.Set("X-Door", "open")
		return x.Outgoing(r)
	}
	if err := send("other.example", 443); err != nil {
		t.Fatalf("INCONCLUSIVE: at another host: %v", err)
	}
	if err := send("api.example", 8443); err == nil || !strings.Contains(err.Error(), "header X-Door") {
		t.Errorf("on the host's other port: %v", err)
	}
}
