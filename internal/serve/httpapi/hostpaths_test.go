package httpapi

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
)

// TestATokenIsToldNoPathOfTheHost: where an installation and its policies lie is for who is on
// the host, or administers it; a token gets the same answers without.
func TestATokenIsToldNoPathOfTheHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named, err := namedpolicy.Open(dir, func(string) []string { return nil })
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
		Version: filledVersion(dir),
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
	w := httptest.NewRecorder()
	s.ServeHTTP(w, asToken(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/version", nil)))
	var told api.Version
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	full := filledVersion(dir)
	if want := (api.Version{Version: full.Version, URL: full.URL, Domain: full.Domain}); told != want {
		t.Errorf("a token is told %+v, want %+v", told, want)
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

// filledVersion has a path of the host in each text that is for nobody but the host and its admins, also in those that
// the type may get one day.
func filledVersion(dir string) api.Version {
	v := api.Version{Version: "1", URL: "https://127.0.0.1:7433", Domain: "box.example"}
	for i, all := 0, reflect.ValueOf(&v).Elem(); i < all.NumField(); i++ {
		if f := all.Field(i); f.Kind() == reflect.String && f.String() == "" {
			f.SetString(dir + "/" + all.Type().Field(i).Name)
		}
	}
	return v
}
