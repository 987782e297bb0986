package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/policies"
	"github.com/cofferdam-dev/cofferdam/internal/token"
	"github.com/cofferdam-dev/cofferdam/internal/token/tokentest"
)

// TestATokenIsToldNoPathOfTheHost: where an installation and its policies lie is for who is on
// the host, or administers it; a token gets the same answers without.
func TestATokenIsToldNoPathOfTheHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named, err := policies.Open(dir, func(string) []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := named.Put("team", "team.yaml", []byte("packages: { default: deny }\n")); err != nil {
		t.Fatal(err)
	}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{
		Tokens: book, Policies: named, Log: &approvaltest.Log{}, Logger: slog.New(slog.DiscardHandler),
		Version: api.Version{Version: "1", State: dir, CAFile: dir + "/api-ca.pem"},
	})
	asAdmin, asToken := shows(t, book, token.Grant{Name: "admin", Admin: true}), shows(t, book, token.Grant{Name: "plain", Policies: []string{"team"}})
	for path, has := range map[string]string{"/v1/policies": `"team"`, "/v1/policies/team": "team.yaml", "/v1/version": `"version"`} {
		for who, as := range map[string]func(*http.Request) *http.Request{"an admin": asAdmin, "a token": asToken} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, as(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)))
			told := strings.Contains(w.Body.String(), dir)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), has) || told != (who == "an admin") {
				t.Errorf("%s, asked by %s: %d %s", path, who, w.Code, w.Body)
			}
		}
	}
	for source, want := range map[string]string{"/home/ann/p.yaml": "p.yaml", "p.yaml": "p.yaml", "default": "default", "": ""} {
		if got := (caller{token: &token.Token{}}).sourceName(source); got != want {
			t.Errorf("%q is %q to a token, want %q", source, got, want)
		}
		if got := (caller{}).sourceName(source); got != source {
			t.Errorf("%q is %q to the host", source, got)
		}
	}
}
