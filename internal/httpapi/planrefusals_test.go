package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/token"
	"github.com/cofferdam-dev/cofferdam/internal/token/tokentest"
)

// TestAPlansSandboxIsAskedAbout: a sandbox that is named is found, whatever it is for: an agent whose plan fails asks
// what the plan's was refused. Whoever names none asks about the last run that was no plan.
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
	for query, want := range map[string]string{"sandbox=sb-plan": `"weighed"`, "sandbox=sb-work": `"work"`, "": `"work"`} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/refusals?"+query, nil)
		r.Header.Set("X-Api-Key", secret)
		if s.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
}
