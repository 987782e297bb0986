package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
)

// TestAPlansSandboxIsAskedAbout: a sandbox that is named is found, whatever it is for: an agent whose plan fails asks
// what the plan's was refused. A caller that names none asks about the last run that was no plan.
func TestAPlansSandboxIsAskedAbout(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, secret, err := book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	keys := audit.NewOwnerKeys([]byte("the installation's"))
	began(t, log, keys, tok.ID, "work")
	plan := audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Started, Run: "weighed", Sandbox: "sb-plan", Token: tok.ID,
		Detail: map[string]string{"plan": "true", audit.DetailOwnerKey: keys.Of("weighed", tok.ID)},
	}
	if _, err := log.Append(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	s := New(Config{Log: log, OwnerKeys: keys, Tokens: book, Door: admission.New(admission.Config{Log: log}), Logger: slog.New(slog.DiscardHandler)})
	ask := func(secret, query string) (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/refusals?"+query, nil)
		r.Header.Set("X-Api-Key", secret)
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for query, want := range map[string]string{"sandbox=sb-plan": `"weighed"`, "sandbox=sb-work": `"work"`, "": `"work"`} {
		if code, body := ask(secret, query); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%q: %d %s, want %s", query, code, body, want)
		}
	}
	_, other, err := book.Issue(t.Context(), token.Grant{Name: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	// Another's is told as one that there is not.
	_, none := ask(other, "sandbox=sb-none")
	for _, query := range []string{"sandbox=sb-plan", "sandbox=sb-work", "sandbox=sb-plan&run=weighed", "run=weighed"} {
		code, body := ask(other, query)
		if of := strings.TrimPrefix(strings.SplitN(query, "&", 2)[0], "sandbox="); code != http.StatusNotFound || !strings.Contains(query, "run=") && body != strings.ReplaceAll(none, "sb-none", of) {
			t.Errorf("another's %q: %d %s", query, code, body)
		}
	}
}
