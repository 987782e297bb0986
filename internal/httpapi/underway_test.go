package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/token"
	"github.com/cofferdam-dev/cofferdam/internal/token/tokentest"
)

// TestEveryRequestOfATokenIsCounted: no route serves a token of which so many requests are under way as it may
// have, those that follow something among them. Another token is served, and so are requests that end something.
func TestEveryRequestOfATokenIsCounted(t *testing.T) {
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ann, secret, err := book.Issue(t.Context(), token.Grant{Name: "ann", Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Log: &approvaltest.Log{}, Tokens: book})
	served := 0
	for _, to := range s.routes() {
		if to.who != holders && to.who != admins {
			continue
		}
		served++
		method, path, _ := strings.Cut(to.pattern, " ")
		t.Run(to.pattern, func(t *testing.T) {
			reached := false
			ask := func(handle handler) (int, string) {
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
				r.Header.Set("X-Api-Key", secret)
				s.serve(route{to.pattern, to.who, handle})(w, r)
				return w.Code, w.Body.String()
			}
			done := func(http.ResponseWriter, *http.Request) error { reached = true; return nil }
			if status, text := ask(done); !reached {
				t.Fatalf("the control: %d %s", status, text)
			}
			reached = false
			var leave []func()
			for range backend.UnderwayEach {
				left, err := s.cfg.Underway.Join(ann.ID, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", nil))
				if err != nil {
					t.Fatal(err)
				}
				leave = append(leave, left)
			}
			ends := method == http.MethodDelete || strings.HasSuffix(path, "/signal") || strings.HasSuffix(path, "/pause")
			status, text := ask(done)
			switch {
			case reached != ends:
				t.Errorf("served: %t; %d %s", reached, status, text)
			case !ends && (status != http.StatusTooManyRequests || !strings.Contains(text, "1024 requests of this token are under way")):
				t.Errorf("%d %s", status, text)
			}
			for _, left := range leave {
				left()
			}
		})
	}
	if served < 40 {
		t.Errorf("%d routes; the test looks for the wrong ones", served)
	}
}

// TestStrangersAreCounted: no route holds any number of requests that show no token, those that it refuses included.
func TestStrangersAreCounted(t *testing.T) {
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Log: &approvaltest.Log{}, Tokens: book})
	for _, to := range s.routes() {
		method, path, _ := strings.Cut(to.pattern, " ")
		ask := func() int {
			w := httptest.NewRecorder()
			s.serve(route{to.pattern, to.who, func(http.ResponseWriter, *http.Request) error { return nil }})(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			return w.Code
		}
		if status := ask(); status == http.StatusTooManyRequests {
			t.Fatalf("the control, %s, is told %d", to.pattern, status)
		}
		var all []func()
		for range backend.UnderwayStrangers {
			leave, err := s.cfg.Underway.JoinStranger()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, leave)
		}
		if status := ask(); status != http.StatusTooManyRequests {
			t.Errorf("one more of %s is told %d", to.pattern, status)
		}
		for _, leave := range all {
			leave()
		}
		if status := ask(); status == http.StatusTooManyRequests {
			t.Errorf("when they have left, %s is told %d", to.pattern, status)
		}
	}
}
