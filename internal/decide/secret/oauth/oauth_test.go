package oauth_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/oauth"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// own is the client's secret, which has letters that are escaped in a form.
type own string

func (o own) Fetch(context.Context) (secret.Value, error) { return secret.NewValue(string(o)) }

const clients = own("the-clients+canary/secret")

// issuer stands in for a token endpoint. It answers with what is set, to the client alone.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex // guards all below
	status  int
	kind    string
	answer  string
	stalled chan struct{}
	asked   []string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	s := &issuer{status: 200, kind: "application/json"}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, basic := r.BasicAuth()
	_ = r.ParseForm()
	s.mu.Lock()
	status, kind, answer, stalled := s.status, s.kind, s.answer, s.stalled
	s.asked = append(s.asked, fmt.Sprintf("%s %s %t %s %s %s", r.Method, r.URL, basic, user, password, r.PostForm.Encode()))
	s.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
		return
	}
	w.Header().Set("Location", s.URL+"/elsewhere")
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (s *issuer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *issuer) gives(token string, life int) {
	text, _ := json.Marshal(map[string]any{"access_token": token, "token_type": "bearer", "expires_in": life, "refresh_token": "canary-refresh"})
	s.set(func() { s.status, s.answer = 200, string(text) })
}

func config(s *issuer) oauth.Config {
	return oauth.Config{TokenURL: s.URL + "/token", ClientID: "agents", ClientSecret: clients, Scopes: []string{"read", "write"}, Parameters: map[string]string{"audience": "api"}}
}

func source(t *testing.T, cfg oauth.Config) *oauth.Endpoint {
	t.Helper()
	e, err := oauth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestConforms(t *testing.T) {
	sourcetest.Conforms(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		s := newIssuer(t)
		return sourcetest.Harness{
			Source: source(t, config(s)), Exact: true,
			Put:    func(_ *testing.T, text string) { s.gives(text, 3600) },
			Remove: func(*testing.T) { s.set(func() { s.status, s.answer = 404, "canary" }) },
			Stall: func(t *testing.T) {
				t.Helper()
				stalled := make(chan struct{})
				t.Cleanup(func() { close(stalled) })
				s.set(func() { s.stalled = stalled })
			},
		}
	})
}

// TestHowATokenIsAskedFor: by basic authentication or in the form, once, with what is
// configured.
func TestHowATokenIsAskedFor(t *testing.T) {
	s := newIssuer(t)
	s.gives("the-token", 3600)
	cfg := config(s)
	for _, cfg.InBody = range []bool{false, true} {
		if v, err := source(t, cfg).Fetch(t.Context()); err != nil || v.Reveal() != "the-token" {
			t.Errorf("%q, %v", v.Reveal(), err)
		}
	}
	want := []string{
		"POST /token true agents the-clients%2Bcanary%2Fsecret audience=api&grant_type=client_credentials&scope=read+write",
		"POST /token false   audience=api&client_id=agents&client_secret=the-clients%2Bcanary%2Fsecret&grant_type=client_credentials&scope=read+write",
	}
	if fmt.Sprint(s.asked) != fmt.Sprint(want) {
		t.Errorf("%q", s.asked)
	}
}

// TestWhatAnEndpointSays becomes one sentence each, that has none of its words, and
// nothing of the client's secret. It is asked once for each.
func TestWhatAnEndpointSays(t *testing.T) {
	for _, c := range []struct {
		status       int
		kind, answer string
		want         string
	}{
		{400, "", `{"error":"invalid_client","error_description":"canary"}`, "does not know the client (invalid_client)"},
		{401, "", "canary", "does not know the client (invalid_client)"},
		{400, "", `{"error":"invalid_scope","error_description":"canary"}`, "refuses a token (invalid_scope)"},
		{200, "", `{"error":"unauthorized_client"}`, "refuses a token (unauthorized_client)"},
		{400, "", `{"error":"canary"}`, "answers with the status 400"},
		{503, "text/html", "<canary>", "answers with the status 503"},
		{302, "", "canary", "sends elsewhere"},
		{307, "", "canary", "sends elsewhere"},
		{200, "", "canary", "no token"},
		{200, "", `{"canary":1}`, "no token"},
		{200, "", `{"access_token":7}`, "no token"},
		{200, "", `{"access_token":"canary-token","expires_in":3600,"token_type":"mac"}`, "another type than bearer"},
		{200, "", `{"access_token":"canary-token"}`, "does not say when it expires"},
		{200, "", `{"access_token":"canary-token","expires_in":0}`, "does not say when it expires"},
		{200, "", `{"access_token":"canary-token","expires_in":-1}`, "it has expired already"},
		{200, "text/plain", `access_token=canary-token&expires_in=canary`, "does not say when it expires"},
		{200, "", `{"access_token":"canary\ntoken","expires_in":3600}`, "another control character"},
		{200, "", `{"access_token":"` + strings.Repeat("canary", 1<<18) + `"}`, "gave more than a token"},
	} {
		s := newIssuer(t)
		s.set(func() { s.status, s.answer = c.status, c.answer })
		if c.kind != "" {
			s.kind = c.kind
		}
		v, err := source(t, config(s)).Fetch(t.Context())
		if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(fault.Sentence(err, ""), "the token endpoint "+s.URL+"/token ") || !strings.Contains(fault.Sentence(err, ""), c.want) ||
			strings.Contains(fmt.Sprintf("%v %+v", err, err), "canary") || v.Reveal() != "" || len(s.asked) != 1 {
			t.Errorf("%d %.60s: %v, asked %d times", c.status, c.answer, err, len(s.asked))
		}
	}
	s := newIssuer(t)
	s.Close()
	if _, err := source(t, config(s)).Fetch(t.Context()); err == nil || !strings.Contains(fault.Sentence(err, ""), "can't be reached") || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	cfg := config(newIssuer(t))
	cfg.ClientSecret = own("")
	if _, err := source(t, cfg).Fetch(t.Context()); err == nil || !strings.Contains(fault.Sentence(err, ""), "can't be had: it is empty") {
		t.Error(err)
	}
}

// TestAnAnswerWithoutEnd is given up.
func TestAnAnswerWithoutEnd(t *testing.T) {
	gone := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		for {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	_, err := source(t, oauth.Config{TokenURL: s.URL, ClientID: "a", ClientSecret: clients}).Fetch(t.Context())
	if err == nil || !strings.Contains(fault.Sentence(err, ""), "gave more than a token") {
		t.Error(err)
	}
	<-gone
}

// TestATokenIsUsedUntilItExpires: for all requests of a run, and renewed before its end.
// One that does not expire is used as long as the operator says.
func TestATokenIsUsedUntilItExpires(t *testing.T) {
	s := newIssuer(t)
	s.gives("the-token", 3600)
	begin := time.Now()
	clock := begin
	lease := func(keep time.Duration, endless bool) *secret.Lease {
		cfg := config(s)
		cfg.Endless = endless
		return secret.NewBroker([]secret.Declared{{Name: "one", Hosts: []string{"api.example"}, Source: source(t, cfg), Keep: keep}}, func() time.Time { return clock }).Lease()
	}
	l := lease(24*time.Hour, false)
	for _, one := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {time.Minute, 1}, {59 * time.Minute, 1}, {3590 * time.Second, 2}} {
		clock = begin.Add(one.after)
		if v, err := l.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-token" || len(s.asked) != one.asked {
			t.Errorf("after %s: %v, asked %d times", one.after, err, len(s.asked))
		}
	}
	s.set(func() { s.answer = `{"access_token":"the-token"}` })
	if v, err := lease(time.Minute, true).Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-token" {
		t.Error(err)
	}
}

// TestOverTLSItMustBeWhoItSays.
func TestOverTLSItMustBeWhoItSays(t *testing.T) {
	s := &issuer{kind: "application/json"}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	s.gives("the-token", 60)
	cfg := config(s)
	if _, err := source(t, cfg).Fetch(t.Context()); err == nil || !strings.Contains(fault.Sentence(err, ""), "can't be reached") || len(s.asked) > 0 {
		t.Errorf("a server whose certificate nobody vouches for was believed: %v", err)
	}
	cfg.Roots = func() ([]byte, error) {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), nil
	}
	if v, err := source(t, cfg).Fetch(t.Context()); err != nil || v.Reveal() != "the-token" {
		t.Error(err)
	}
}

func TestWhatCanNotBeConfigured(t *testing.T) {
	good := oauth.Config{TokenURL: "https://login.example/token", ClientID: "a", ClientSecret: clients}
	if _, err := oauth.New(good); err != nil {
		t.Error(err)
	}
	plain, nobody, doubled := good, good, good
	plain.TokenURL, nobody.ClientID, doubled.Parameters = "http://login.example/token", "", map[string]string{"client_secret": "a"}
	for want, cfg := range map[string]oauth.Config{".token_url must begin with https://": plain, ".client_id is missing": nobody, ".parameters has client_secret": doubled} {
		if _, err := oauth.New(cfg); !errors.Is(err, fault.ErrInvalid) || !strings.HasPrefix(fault.Sentence(err, ""), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
