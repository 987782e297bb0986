package admission

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/egress/credentials"
	egressrequests "github.com/cofferdam-dev/cofferdam/internal/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
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
