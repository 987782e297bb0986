package vault_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/vault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// token is a source of the vault's own.
type token string

func (t token) Fetch(context.Context) (secret.Value, error) { return secret.NewValue(string(t)) }

// server stands in for a Vault: it has one secret.
type server struct {
	*httptest.Server
	mu      sync.Mutex // guards all below
	has     *string
	stalled chan struct{}
	status  int
	answer  string
	asked   []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	has, stalled, status, answer := s.has, s.stalled, s.status, s.answer
	s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Vault-Token")+" "+r.Header.Get("X-Vault-Namespace"))
	s.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
		return
	}
	switch {
	case r.Header.Get("X-Vault-Token") != "the-daemons-token" || r.URL.Path != "/v1/kv/team/data/agents/openai":
		status, answer = http.StatusForbidden, `{"errors":["permission denied"]}`
	case status != 0:
	case has == nil:
		status, answer = http.StatusNotFound, `{"errors":[]}`
	default:
		text, _ := json.Marshal(map[string]any{"data": map[string]any{"data": map[string]any{"key": *has, "number": 1, "other": "canary"}, "metadata": map[string]any{"version": 3}}})
		status, answer = http.StatusOK, string(text)
	}
	w.Header().Set("Location", "http://elsewhere.example/canary")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func config(s *server) vault.Config {
	return vault.Config{Address: s.URL, Namespace: "ns1", Mount: "kv/team", Path: "agents/openai", Field: "key", Token: token("the-daemons-token")}
}

func source(t *testing.T, cfg vault.Config) *vault.Place {
	t.Helper()
	p, err := vault.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConforms(t *testing.T) {
	sourcetest.Conforms(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		s := newServer(t)
		return sourcetest.Harness{
			Source: source(t, config(s)),
			Put:    func(_ *testing.T, text string) { s.set(func() { s.has = &text }) },
			Remove: func(*testing.T) { s.set(func() { s.has = nil }) },
			Stall: func(t *testing.T) {
				t.Helper()
				stalled := make(chan struct{})
				t.Cleanup(func() { close(stalled) })
				s.set(func() { s.stalled = stalled })
			},
		}
	})
}

// TestWhatAVaultSays becomes one sentence each, that has none of its words.
func TestWhatAVaultSays(t *testing.T) {
	for _, c := range []struct {
		status int
		answer string
		want   string
	}{
		{503, `{"errors":["Vault is sealed canary"]}`, " is sealed"},
		{501, "", " is not initialized"},
		{403, `{"errors":["canary"]}`, "denies it to the daemon's token"},
		{404, `{"data":{"data":null,"metadata":{"deletion_time":"canary"}}}`, "has no secret there"},
		{429, "", "standby"},
		{307, "", "sends elsewhere"},
		{500, "canary", "answers with the status 500"},
		{200, "canary", "no JSON"},
		{200, `{"data":{"key":"canary"}}`, "has no field key"},
		{200, `{"data":{"data":{"key":7}}}`, "no text"},
		{200, strings.Repeat("canary", 1<<18), "more than a secret"},
		{200, `{"lease_duration":1,"data":{"data":{"key":"canary-secret"}}}`, "has expired already"},
		{200, `{"lease_duration":-5,"data":{"data":{"key":"canary-secret"}}}`, "has expired already"},
	} {
		s := newServer(t)
		s.set(func() { s.status, s.answer = c.status, c.answer })
		v, err := source(t, config(s)).Fetch(t.Context())
		if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(fault.Sentence(err, ""), c.want) || strings.Contains(err.Error(), "canary") || v.Reveal() != "" {
			t.Errorf("%d %s: %v", c.status, c.answer, err)
		}
	}
	s := newServer(t)
	s.Close()
	if _, err := source(t, config(s)).Fetch(t.Context()); err == nil || !strings.Contains(fault.Sentence(err, ""), "can't be reached") {
		t.Error(err)
	}
}

// TestWhatIsLentIsUsedNoLongerThanThat, whatever the operator lets a run keep.
func TestWhatIsLentIsUsedNoLongerThanThat(t *testing.T) {
	s := newServer(t)
	s.set(func() {
		s.status, s.answer = 200, `{"lease_duration":60,"data":{"data":{"key":"the-secret"}}}`
	})
	clock := time.Unix(1e9, 0)
	lease := secret.NewBroker([]secret.Declared{{Name: "one", Hosts: []string{"api.example"}, Source: source(t, config(s)), Keep: time.Hour}}, func() time.Time { return clock }).Lease()
	for _, one := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {50 * time.Second, 1}, {60 * time.Second, 2}} {
		clock = time.Unix(1e9, 0).Add(one.after)
		if v, err := lease.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-secret" || len(s.asked) != one.asked {
			t.Errorf("after %s: %q, %v, asked %d times", one.after, v.Reveal(), err, len(s.asked))
		}
	}
}

func TestTheTokenGoesToTheVaultAlone(t *testing.T) {
	s := newServer(t)
	if _, err := source(t, config(s)).Fetch(t.Context()); err == nil {
		t.Fatal("an empty vault has a secret")
	}
	if want := "GET /v1/kv/team/data/agents/openai the-daemons-token ns1"; len(s.asked) != 1 || s.asked[0] != want {
		t.Errorf("%q", s.asked)
	}
	cfg := config(s)
	cfg.Token = token("wrong-token")
	if _, err := source(t, cfg).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "denies it") {
		t.Error(err)
	}
	cfg.Token = token("")
	if _, err := source(t, cfg).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "the token for the vault can't be had: it is empty") {
		t.Error(err)
	}
}

// TestAVaultOverTLS must be who it says: by the system's certificates, or by the ones that
// are configured.
func TestAVaultOverTLS(t *testing.T) {
	text := "the-secret"
	s := &server{has: &text}
	s.Server = httptest.NewTLSServer(s)
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	cfg := config(s)
	if _, err := source(t, cfg).Fetch(t.Context()); err == nil || !strings.Contains(fault.Sentence(err, ""), "can't be reached") {
		t.Errorf("a server whose certificate nobody vouches for was believed: %v", err)
	}
	cfg.Roots = func() ([]byte, error) {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), nil
	}
	if v, err := source(t, cfg).Fetch(t.Context()); err != nil || v.Reveal() != text {
		t.Errorf("%q, %v", v.Reveal(), err)
	}
	cfg.Roots = func() ([]byte, error) { return []byte("none"), nil }
	if _, err := source(t, cfg).Fetch(t.Context()); err == nil {
		t.Error("a file without certificates was taken")
	}
}

func TestWhereAVaultCanBe(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://vault.example:8200": true, "https://vault.example/base": true, "http://127.0.0.1:8200": true, "http://[::1]:8200": true,
		"http://vault.example:8200": false, "http://10.0.0.1:8200": false, "http://localhost:8200": false, "vault.example": false,
		"https://me:x@vault.example": false, "https://vault.example/?a=b": false, "ftp://vault.example": false, "": false,
	} {
		_, err := vault.New(vault.Config{Address: address, Mount: "secret", Path: "a", Field: "b", Token: token("t")})
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, c := range []vault.Config{{Mount: "", Path: "a", Field: "b"}, {Mount: "m", Path: "../sys", Field: "b"}, {Mount: "m", Path: "a//b", Field: "b"}, {Mount: "m", Path: "a"}} {
		c.Address = "https://vault.example"
		if _, err := vault.New(c); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
