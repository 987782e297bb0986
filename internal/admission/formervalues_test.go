package admission

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/egress/credentials"
	egressrequests "github.com/cofferdam-dev/cofferdam/internal/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/secret"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
)

const tokenPolicy = "network_allowlist: [ api.example ]\ncredentials: { inject: [ { host: api.example, secret: one } ] }\n"

// lending is a daemon whose one secret is lent: each time it is fetched it is another one, as tokens
// are that an endpoint or a vault gives. The one that was lent before is still good at the host.
func lending(source secret.Source, log *approvaltest.Log) *Controller {
	return New(Config{Log: log, Secrets: secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}, Source: source, Keep: time.Hour,
	}}, time.Now)})
}

func tokenRun(t *testing.T, sandbox string) Run {
	t.Helper()
	p, err := policy.Parse("p", []byte(tokenPolicy))
	must(t, err)
	return Run{Sandbox: sandbox, Run: "run-" + sandbox, Policy: p, Placeholders: map[string]string{"one": "fake-one-of-" + sandbox}}
}

// sentBy sends a sandbox's request, and gives with what credential it left and the answer as it comes in.
func sentBy(t *testing.T, all credentials.Exchanges, sandbox string, body io.Reader) (sent string, answer io.ReadCloser) {
	t.Helper()
	x, err := all.Exchange(t.Context(), egressrequests.Connection{Sandbox: sandbox, Name: "api.example", Port: 443, TLS: true})
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/comments", http.NoBody)
	must(t, err)
	must(t, x.Outgoing(r))
	a := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(body), Request: r}
	must(t, x.Incoming(a))
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), a.Body
}

func text(t *testing.T, from io.ReadCloser) string {
	t.Helper()
	all, err := io.ReadAll(from)
	must(t, err)
	return string(all)
}
