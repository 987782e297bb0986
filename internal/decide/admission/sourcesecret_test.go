package admission

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/oauth"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/vault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	carrying "github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// The secrets that the daemon has for itself, and the sandbox never.
const (
	clientSecret = "canary-of-the-client-itself"
	vaultToken   = "hvs.canary-of-the-vaults-token"
	lentSecret   = "canary-that-is-lent"
)

// service is a host that gives a token for a client's secret and has an API beside that, as
// services with an identity of their own have; and a vault.
func service(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/oauth/token":
		_, _ = io.WriteString(w, `{"access_token":"`+lentSecret+`","token_type":"Bearer","expires_in":3600}`)
	case "/v1/kv/data/it":
		_, _ = io.WriteString(w, `{"data":{"data":{"it":"`+lentSecret+`"}}}`)
	case "/api/v2/clients/agents": // Auth0's, Okta's and Keycloak's management answer so to that client's token
		_, _ = io.WriteString(w, `{"client_id":"agents","client_secret":"`+clientSecret+`","token":"`+vaultToken+`","access":"`+lentSecret+`"}`)
	}
}

// TestTheSecretOfASourceNeverEnters: what the daemon shows an endpoint or a vault, to get a secret for
// requests, is a secret as well, and the same host may say it.
func TestTheSecretOfASourceNeverEnters(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(service))
	t.Cleanup(host.Close)
	oauthSource, err := oauth.New(oauth.Config{TokenURL: host.URL + "/oauth/token", ClientID: "agents", ClientSecret: place(clientSecret)})
	must(t, err)
	vaultSource, err := vault.New(vault.Config{Address: host.URL, Mount: "kv", Path: "it", Field: "it", Token: place(vaultToken)})
	must(t, err)
	for what, c := range map[string]struct {
		source secret.Source
		canary string
	}{
		"what is lent, by OAuth (control)":   {oauthSource, lentSecret},
		"what is lent, by a vault (control)": {vaultSource, lentSecret},
		"the client's secret of OAuth":       {oauthSource, clientSecret},
		"the token of a vault":               {vaultSource, vaultToken},
	} {
		t.Run(what, func(t *testing.T) {
			broker := secret.NewBroker([]secret.Declared{{Name: "it", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}, Source: c.source, Keep: time.Hour}}, time.Now)
			ctl := New(Config{Log: &approvaltest.Log{}, Secrets: broker})
			p, err := policy.Parse("p", []byte("network_allowlist: [ api.example ]\ncredentials: { inject: [ { host: api.example, secret: it } ] }\n"))
			must(t, err)
			must(t, ctl.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p, Placeholders: map[string]string{"it": "fake-it-AAAAAAAAAAAA"}}))
			x, err := credentials.New(ctl).Exchange(t.Context(), carrying.Connection{Sandbox: "sb1", Name: "api.example", Port: 443, TLS: true})
			must(t, err)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, host.URL+"/api/v2/clients/agents", nil)
			must(t, err)
			must(t, x.Outgoing(r))
			if got := r.Header.Get("Authorization"); got != "Bearer "+lentSecret {
				t.Fatalf("the host gets %q", got)
			}
			a, err := http.DefaultTransport.RoundTrip(r)
			must(t, err)
			defer a.Body.Close()
			must(t, x.Incoming(a))
			body, err := io.ReadAll(a.Body)
			must(t, err)
			if strings.Contains(string(body), c.canary) {
				t.Errorf("inside: %s", body)
			}
		})
	}
}
