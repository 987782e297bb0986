package httpapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
)

// admitted is who may use which route, as it was decided: a route that changes
// hands, or comes without a line here, is found by the test below. The letters are
// callers without a token, with a token, with an admin token, on the Unix socket.
func admitted() map[string]string {
	const (
		anyone = "NTAU"
		token  = "TAU"
		admin  = "AU"
		socket = "U"
	)
	return map[string]string{
		"GET /v1/openapi.yaml": anyone,

		"GET /v1/version":                               token,
		"POST /v1/sandboxes":                            token,
		"GET /v1/sandboxes":                             token,
		"GET /v1/sandboxes/{id}":                        token,
		"DELETE /v1/sandboxes/{id}":                     token,
		"GET /v1/sandboxes/{id}/holds":                  token,
		"POST /v1/sandboxes/{id}/pause":                 token,
		"POST /v1/sandboxes/{id}/resume":                token,
		"PUT /v1/sandboxes/{id}/lifetime":               token,
		"GET /v1/sandboxes/{id}/usage":                  token,
		"GET /v1/sandboxes/{id}/controls":               token,
		"POST /v1/sandboxes/{id}/snapshots":             token,
		"POST /v1/sandboxes/{id}/fork":                  token,
		"POST /v1/sandboxes/{id}/commands":              token,
		"GET /v1/sandboxes/{id}/commands/{cmd}":         token,
		"POST /v1/sandboxes/{id}/commands/{cmd}/signal": token,
		"GET /v1/sandboxes/{id}/commands/{cmd}/attach":  token,
		"GET /v1/sandboxes/{id}/ports/{port}":           token,
		"GET /v1/sandboxes/{id}/files":                  token,
		"PUT /v1/sandboxes/{id}/files":                  token,
		"DELETE /v1/sandboxes/{id}/files":               token,
		"GET /v1/sandboxes/{id}/files/stat":             token,
		"GET /v1/sandboxes/{id}/files/list":             token,
		"POST /v1/sandboxes/{id}/files/mkdir":           token,
		"POST /v1/sandboxes/{id}/files/move":            token,
		"GET /v1/events":                                token,
		"POST /v1/calls":                                token,
		"GET /v1/snapshots":                             token,
		"GET /v1/snapshots/{ref}":                       token,
		"DELETE /v1/snapshots/{ref}":                    token,
		"GET /v1/runs/{run}/summary":                    token,
		"GET /v1/runs/{run}/suggest":                    token,
		"GET /v1/runs/{run}/plan":                       token,
		"POST /v1/runs/{run}/plan":                      token,
		"GET /v1/refusals":                              token,
		"GET /v1/alarms":                                token,
		"GET /v1/installs":                              token,
		"GET /v1/templates":                             token,
		"GET /v1/templates/{name}":                      token,
		"GET /v1/policies":                              token,
		"GET /v1/policies/{name}":                       token,
		"GET /v1/advisories/check":                      token,

		"POST /v1/shutdown":              admin,
		"GET /v1/clock":                  admin,
		"POST /v1/clock/accept":          socket,
		"POST /v1/config/reload":         socket,
		"PUT /v1/advisories/{label}":     admin,
		"POST /v1/templates/{name}":      admin,
		"DELETE /v1/templates/{name}":    admin,
		"PUT /v1/policies/{name}":        admin,
		"DELETE /v1/policies/{name}":     admin,
		"GET /v1/secrets":                socket,
		"GET /v1/homes":                  socket,
		"DELETE /v1/homes/{name}":        socket,
		"GET /v1/tokens":                 admin,
		"POST /v1/tokens":                admin,
		"DELETE /v1/tokens/{id}":         admin,
		"GET /v1/approvals":              admin,
		"GET /v1/approvals/watch":        admin,
		"GET /v1/approvals/{id}":         admin,
		"GET /v1/approvals/{id}/diff":    admin,
		"GET /v1/audit/records":          admin,
		"GET /v1/audit/stream":           admin,
		"POST /v1/audit/query":           admin,
		"POST /v1/audit/reports/{name}":  admin,
		"POST /v1/audit/seal":            admin,
		"POST /v1/audit/erase":           admin,
		"POST /v1/audit/key":             admin,
		"GET /v1/advisories":             admin,
		"POST /v1/advisories":            socket,
		"DELETE /v1/advisories":          admin,
		"DELETE /v1/advisories/{label}":  admin,
		"POST /v1/approvals/answer":      socket,
		"POST /v1/approvals/{id}/revoke": socket,
	}
}

// TestWhoMayWhat asks every route as every kind of caller.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Tokens: book, Log: log, Logger: slog.New(slog.DiscardHandler)})
	callers := map[string]func(*http.Request) *http.Request{
		"N": func(r *http.Request) *http.Request { return r },
		"T": shows(t, book, token.Grant{Name: "plain"}),
		"A": shows(t, book, token.Grant{Name: "admin", Admin: true}),
		"U": func(r *http.Request) *http.Request {
			return r.WithContext(context.WithValue(r.Context(), socketKey{}, caller{name: "somebody"}))
		},
	}
	mux := http.NewServeMux()
	want := admitted()
	for _, route := range s.routes() {
		if _, listed := want[route.pattern]; !listed {
			t.Errorf("%s has no line in the table", route.pattern)
		}
		route.handle = func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusTeapot)
			return nil
		}
		mux.HandleFunc(route.pattern, s.serveRoute(route))
	}
	for pattern, who := range want {
		for kind, as := range callers {
			status := ask(t, mux, pattern, as)
			allowed := strings.Contains(who, kind)
			switch {
			case allowed && status != http.StatusTeapot:
				t.Errorf("%s as %s: %d; it is for it", pattern, kind, status)
			case !allowed && kind == "N" && status != http.StatusUnauthorized, !allowed && kind != "N" && status != http.StatusForbidden:
				t.Errorf("%s as %s: %d; it is not for it", pattern, kind, status)
			}
		}
	}
	refused := map[string]bool{}
	for _, r := range log.All() {
		if r.Kind != audit.KindDaemon || r.Outcome != audit.Blocked || r.Detail["event"] != "api_refused" {
			t.Errorf("a record of something else: %+v", r)
		}
		refused[r.Detail["route"]] = true
	}
	for pattern, who := range want {
		if refused[pattern] == (who == "NTAU") {
			t.Errorf("%s: refusals are on record: %v", pattern, refused[pattern])
		}
	}
	before := len(log.All())
	for range 2 {
		s.Refused(t.Context(), "/elsewhere") // of another wire, and not each time
	}
	if all := log.All(); len(all) != before+1 || all[before].Detail["route"] != "/elsewhere" || all[before].User == "" {
		t.Errorf("of what another wire refuses is on record: %+v", all[before:])
	}
}

func ask(t *testing.T, h http.Handler, pattern string, as func(*http.Request) *http.Request) int {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, as(httptest.NewRequestWithContext(t.Context(), method, path, nil)))
	return w.Code
}

func shows(t *testing.T, book *token.Book, grant token.Grant) func(*http.Request) *http.Request {
	t.Helper()
	_, secret, err := book.Issue(t.Context(), grant)
	if err != nil {
		t.Fatal(err)
	}
	return func(r *http.Request) *http.Request {
		r.Header.Set("X-Api-Key", secret)
		return r
	}
}

// TestTokensThatDoNotHold: none, a wrong one, a revoked one, and one in the wrong
// place are all the same to a caller.
func TestTokensThatDoNotHold(t *testing.T) {
	t.Parallel()
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := book.Issue(t.Context(), token.Grant{Name: "once"})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Tokens: book, Log: &approvaltest.Log{}, Logger: slog.New(slog.DiscardHandler)})
	asked := func(set func(http.Header)) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/version", nil)
		set(r.Header)
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	bearer := func(text string) func(http.Header) { return func(h http.Header) { h.Set("Authorization", text) } }
	for name, set := range map[string]func(http.Header){
		"Bearer": bearer("Bearer " + secret), "bearer": bearer("bearer  " + secret),
		"key": func(h http.Header) { h.Set("X-API-Key", secret) },
	} {
		if status, body := asked(set); status != http.StatusOK {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	_, first := asked(func(http.Header) {})
	wrong := map[string]func(http.Header){
		"none": func(http.Header) {}, "wrong": bearer("Bearer e2b_0000000000000000000000000000000000000000"),
		"basic": bearer("Basic " + secret), "bare": bearer(secret), "cookie": func(h http.Header) { h.Set("Cookie", "token="+secret) },
		"empty": bearer("Bearer "),
	}
	if _, err := book.Revoke(t.Context(), "once"); err != nil {
		t.Fatal(err)
	}
	wrong["revoked"] = bearer("Bearer " + secret)
	for name, set := range wrong {
		if status, body := asked(set); status != http.StatusUnauthorized || body != first {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestRefusalsDoNotFillTheLog: who is refused again and again is one record a
// minute, which counts.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	s := New(Config{Log: log, Logger: slog.New(slog.DiscardHandler)})
	for range 500 {
		if status := ask(t, s, "GET /v1/sandboxes", func(r *http.Request) *http.Request { return r }); status != http.StatusUnauthorized {
			t.Fatal(status)
		}
	}
	if n := len(log.All()); n != 1 {
		t.Errorf("%d records", n)
	}
	s.RecordRefused(t.Context(), false) // it is not due yet
	if n := len(log.All()); n != 1 {
		t.Errorf("%d records, before a minute is over", n)
	}
	for range 2 {
		s.RecordRefused(t.Context(), true) // the daemon ends
		if all := log.All(); len(all) != 2 || all[0].Count+all[1].Count != 500 {
			t.Errorf("500 refused requests are on record as %+v", all)
		}
	}
	var seen refusals
	at := func(minutes int) (int, bool) {
		due := seen.noteRefusal(refusedCaller{route: "x"}, time.Unix(int64(60*minutes+1), 0))
		if len(due) == 0 {
			return 0, false
		}
		return due[0].count, len(due) == 1
	}
	for _, want := range []struct {
		minute, count int
		due           bool
	}{{0, 1, true}, {0, 0, false}, {0, 0, false}, {2, 3, true}, {2, 0, false}, {9, 2, true}} {
		if count, due := at(want.minute); count != want.count || due != want.due {
			t.Errorf("minute %d: %d %v, want %d %v", want.minute, count, due, want.count, want.due)
		}
	}
}

// TestNoRefusedRequestIsLost: each is counted in one record, at the latest as the daemon ends: also if
// there are too many different ones to be remembered, and if the log did not take a record at first.
func TestNoRefusedRequestIsLost(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	s := New(Config{Log: log, Logger: slog.New(slog.DiscardHandler)})
	asked := 0
	ask := func(different int) {
		for i := range different {
			for range 3 {
				s.refused(t.Context(), "", "nobody", route{pattern: fmt.Sprint("GET /", i)})
				asked++
			}
		}
	}
	ask(maxRefusals + 7)
	tried := 0
	log.FailWhen(func(audit.Record) error { tried++; return io.ErrShortWrite })
	ask(20)
	tried = 0
	s.RecordRefused(t.Context(), true)
	if tried != 1 { // each of many could wait as long for a log that hangs
		t.Errorf("a log that takes nothing is asked %d times", tried)
	}
	log.FailWhen(nil)
	s.RecordRefused(t.Context(), true)
	counted := 0
	for _, r := range log.All() {
		counted += r.Count
	}
	if counted != asked {
		t.Errorf("%d of %d refused requests are on record", counted, asked)
	}
}
