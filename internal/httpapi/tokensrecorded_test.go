package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/token"
	"github.com/cofferdam-dev/cofferdam/internal/token/tokentest"
)

// TestTokensThatAreRefusedAreNotOnRecord: that a token is made is on record before it is; of one that then is
// not made, the log says that, too.
func TestTokensThatAreRefusedAreNotOnRecord(t *testing.T) {
	log := &approvaltest.Log{}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := book.Issue(t.Context(), token.Grant{Name: "admin", Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Log: log, Tokens: book, Logger: slog.New(slog.DiscardHandler)})
	said := func(name string, status int) (outcomes []audit.Outcome) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tokens", strings.NewReader(`{"name":"`+name+`"}`))
		r.Header.Set("X-Api-Key", secret)
		s.ServeHTTP(w, r)
		if w.Code != status {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
		for r, err := range log.Records(t.Context(), audit.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Detail["event"] == "token_made" && r.Detail["name"] == name {
				outcomes = append(outcomes, r.Outcome)
			}
		}
		return outcomes
	}
	if got := said("ci", http.StatusCreated); len(got) != 1 || got[0] != audit.Started {
		t.Errorf("the control: %v", got)
	}
	if got := said("not a name", http.StatusBadRequest); len(got) != 2 || got[1] != audit.Failed {
		t.Errorf("a token that is refused is on record as %v", got)
	}
}
