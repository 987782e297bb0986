package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
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
	said := func(name, more string, status int) (outcomes []audit.Outcome) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tokens", strings.NewReader(`{"name":"`+name+`"`+more+`}`))
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
	if got := said("ci", `,"quota":{"memory_bytes":1048576}`, http.StatusCreated); len(got) != 1 || got[0] != audit.Started {
		t.Errorf("the control: %v", got)
	}
	for name, quota := range map[string]string{"not a name": "", "small": `,"quota":{"memory_bytes":64}`, "flat": `,"quota":{"disk_bytes":64}`, "slow": `,"quota":{"cpu":0.001}`} {
		if got := said(name, quota, http.StatusBadRequest); len(got) != 2 || got[1] != audit.Failed {
			t.Errorf("%s: a token that is refused is on record as %v", name, got)
		}
	}
}

// TestPoliciesThatAreRefusedAreNotOnRecord: so with a named policy that is not put, or not removed, after all.
func TestPoliciesThatAreRefusedAreNotOnRecord(t *testing.T) {
	log := &approvaltest.Log{}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := book.Issue(t.Context(), token.Grant{Name: "admin", Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	named, err := namedpolicy.Open(t.TempDir(), func(name string) []string { return map[string][]string{"used": {"tok-ann"}}[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"used", "free"} {
		if _, err := named.Put(name, "team.yaml", []byte("packages: { default: deny }\n")); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Config{Log: log, Tokens: book, Policies: named, Logger: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		what, method, name, body, event string
		status                          int
		want                            []audit.Outcome
	}{
		{"the control", http.MethodDelete, "free", "", "policy_removed", http.StatusNoContent, []audit.Outcome{audit.Started}},
		{"one that a token may use", http.MethodDelete, "used", "", "policy_removed", http.StatusConflict, []audit.Outcome{audit.Started, audit.Failed}},
		{"one whose name is none", http.MethodPut, "NONE", `{"document":"cGFja2FnZXM6IHsgZGVmYXVsdDogZGVueSB9Cg=="}`, "policy_put", http.StatusBadRequest, []audit.Outcome{audit.Started, audit.Failed}},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), c.method, "/v1/policies/"+c.name, strings.NewReader(c.body))
		r.Header.Set("X-Api-Key", secret)
		s.ServeHTTP(w, r)
		var outcomes []audit.Outcome
		for r, err := range log.Records(t.Context(), audit.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Detail["event"] == c.event && r.Detail["name"] == c.name {
				outcomes = append(outcomes, r.Outcome)
			}
		}
		if w.Code != c.status || !slices.Equal(outcomes, c.want) {
			t.Errorf("%s: %d %s; on record is %v", c.what, w.Code, w.Body, outcomes)
		}
	}
}
