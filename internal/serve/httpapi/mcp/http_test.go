package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/mcp"
)

// tokens are two clients, by their secrets.
type tokens struct {
	mu      sync.Mutex // guards revoked
	revoked map[string]bool
}

func (k *tokens) Check(secret string) (token.Token, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.revoked[secret] || secret != "one" && secret != "two" {
		return token.Token{}, false
	}
	return token.Token{ID: "tok-" + secret, Name: secret}, true
}

type shows struct{ secret string }

func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if s.secret != "" {
		r.Header.Set("Authorization", "Bearer "+s.secret)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func dial(t *testing.T, url, secret string) (*sdk.ClientSession, error) {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: shows{secret}}, MaxRetries: -1}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func overHTTP(t *testing.T, h *house, known *tokens) string {
	t.Helper()
	s := newServer(h, func(c *mcp.Config) {
		c.MaxPeers = 2
		c.Connect = func(_ context.Context, secret string) (mcp.Backend, error) {
			if secret == "" {
				t.Error("a backend without a token")
			}
			return mcp.Over(h.client), nil
		}
	})
	server := httptest.NewServer(s.Handler(known, func(context.Context) { h.strangers.Add(1) }))
	t.Cleanup(func() {
		server.CloseClientConnections() // a client that a failed test left listens on
		server.Close()
	})
	return server.URL
}

// TestWhoMaySpeakOverHTTP: who shows a token, to its own sessions, from no other origin and
// under no other name of this machine.
func TestWhoMaySpeakOverHTTP(t *testing.T) {
	t.Parallel()
	h, known := newHouse(t), &tokens{revoked: map[string]bool{}}
	url := overHTTP(t, h, known)
	for _, secret := range []string{"", "three"} {
		before := h.strangers.Load()
		if _, err := dial(t, url, secret); err == nil {
			t.Errorf("the token %q is let in", secret)
		}
		if h.strangers.Load() == before {
			t.Errorf("nobody hears that the token %q was refused", secret)
		}
	}
	refusals := h.strangers.Load()
	session, err := dial(t, url, "one")
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, session: session}
	p.must("run_command", command("echo"))
	if n := h.strangers.Load(); n != refusals {
		t.Errorf("%d refusals of a valid token", n-refusals)
	}
	ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	for _, c := range []struct {
		about, secret, header, value string
		want                         int
	}{
		{"its own token", "one", "", "", http.StatusOK},
		{"another's token", "two", "", "", http.StatusForbidden},
		{"no token", "", "", "", http.StatusUnauthorized},
		{"another origin", "one", "Origin", "https://evil.example", http.StatusForbidden},
		{"another site", "one", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"another name", "one", "Host", "rebound.example", http.StatusForbidden},
		{"a session of nobody", "one", "Mcp-Session-Id", "nobody", http.StatusNotFound},
	} {
		if got, _ := post(t, url, session.ID(), c.secret, c.header, c.value, ping); got != c.want {
			t.Errorf("%s: %d, want %d", c.about, got, c.want)
		}
	}
	if got, _ := post(t, url, session.ID(), "one", "", "", `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"`+strings.Repeat("x", 5<<20)+`"}}`); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a message that is too large: %d", got)
	}
	if got, _ := post(t, url, session.ID(), "one", "", "", `{"jsonrpc":`); got != http.StatusBadRequest {
		t.Errorf("half a message: %d", got)
	}
	for about, body := range map[string]string{
		"a list of messages":               ` [` + ping + `,` + ping + `]`,
		"one that begins far behind":       strings.Repeat(" ", 2<<10) + "[" + ping + "]",
		"a list with nothing in front":     `[` + ping + `]`,
		"a list behind a line of its own":  "\r\n\t[" + ping + "]",
		"a message that begins far behind": strings.Repeat(" ", 2<<10) + ping,
	} {
		if got, _ := post(t, url, session.ID(), "one", "", "", body); got != http.StatusBadRequest {
			t.Errorf("%s: %d", about, got)
		}
	}
	if got, _ := post(t, url, session.ID(), "one", "", "", "\n "+ping); got != http.StatusOK {
		t.Errorf("a message behind a line of its own: %d", got)
	}
	known.mu.Lock()
	known.revoked["one"] = true
	known.mu.Unlock()
	if got, _ := post(t, url, session.ID(), "one", "", "", ping); got != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", got)
	}
}

// TestSessionsOfATokenAreBounded: and one that ends makes room for another, with its
// sandboxes gone.
func TestSessionsOfATokenAreBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	url := overHTTP(t, h, &tokens{})
	var open []*sdk.ClientSession
	for range 2 {
		session, err := dial(t, url, "one")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, session)
	}
	if _, err := dial(t, url, "one"); err == nil || !strings.Contains(err.Error(), "too_many") {
		t.Errorf("a third session: %v", err)
	}
	if _, err := dial(t, url, "two"); err != nil {
		t.Errorf("another token's first: %v", err)
	}
	p := &peer{t: t, session: open[0]}
	p.must("run_command", command("echo"))
	if err := open[0].Close(); err != nil {
		t.Fatal(err)
	}
	p.await(func() bool { return look(h, func() int { return len(h.removed) }) == 1 })
	p.await(func() bool {
		_, err := dial(t, url, "one")
		return err == nil
	})
}

// TestTheEndOfASessionEndsItsCommands: its client need not wait for them.
func TestTheEndOfASessionEndsItsCommands(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	url := overHTTP(t, h, &tokens{})
	session, err := dial(t, url, "one")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = session.CallTool(context.Background(), &sdk.CallToolParams{Name: "run_command", Arguments: command("hang")})
	}()
	p := &peer{t: t, session: session}
	p.await(func() bool { return look(h, func() int { return len(h.commands) }) == 1 })
	end := func(secret string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", session.ID())
		resp, err := (&http.Client{Transport: shows{secret}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := end("two"); got != http.StatusForbidden {
		t.Errorf("DELETE of another's: %d", got)
	}
	p.must("list_sandboxes", nil) // its calls have not ended
	if got := end("one"); got != http.StatusNoContent {
		t.Errorf("DELETE: %d", got)
	}
	p.await(func() bool { return look(h, func() bool { return len(h.signals) > 0 && len(h.removed) == 1 }) })
}

func post(t *testing.T, url, session, secret, header, value, body string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Session-Id", session)
	switch header {
	case "":
	case "Host":
		req.Host = value
	default:
		req.Header.Set(header, value)
	}
	resp, err := (&http.Client{Transport: shows{secret}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
