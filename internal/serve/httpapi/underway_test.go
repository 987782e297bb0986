package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
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
			ask := func(handle routeHandler) (int, string) {
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
				r.Header.Set("X-Api-Key", secret)
				s.serveRoute(route{to.pattern, to.who, handle})(w, r)
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

// TestStrangersAreCounted: no route that needs no token holds any number of requests that show none. However many there
// are, who is refused is told so, and is on record: else one stranger could keep the guesses of another from the log.
func TestStrangersAreCounted(t *testing.T) {
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &approvaltest.Log{}
	s := New(Config{Log: log, Tokens: book})
	for _, to := range s.routes() {
		method, path, _ := strings.Cut(to.pattern, " ")
		ask := func() int {
			w := httptest.NewRecorder()
			s.serveRoute(route{to.pattern, to.who, func(http.ResponseWriter, *http.Request) error { return nil }})(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}")))
			return w.Code
		}
		free, full, noted := http.StatusUnauthorized, http.StatusUnauthorized, 1
		if to.who == anyone {
			free, full, noted = http.StatusOK, http.StatusTooManyRequests, 0
		}
		if status := ask(); status != free {
			t.Fatalf("the control, %s, is told %d", to.pattern, status)
		}
		s.refusals.takeDue(time.Now(), true) // the next one is on record at once
		before := recordsOf(t, log)
		leave := allStrangers(t, s.cfg.Underway)
		if status := ask(); status != full {
			t.Errorf("one more of %s is told %d", to.pattern, status)
		}
		if n := recordsOf(t, log) - before; n != noted {
			t.Errorf("of one more of %s there are %d records", to.pattern, n)
		}
		leave()
		if status := ask(); status != free {
			t.Errorf("when they have left, %s is told %d", to.pattern, status)
		}
	}
}

// recordsOf is how many records a log has.
func recordsOf(t *testing.T, log audit.Log) (n int) {
	t.Helper()
	for _, err := range log.Records(t.Context(), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// allStrangers has as many strangers join as there may be; leave has all of them leave.
func allStrangers(t *testing.T, u *backend.Underway) (leave func()) {
	t.Helper()
	var all []func()
	for range backend.UnderwayStrangers {
		one, err := u.JoinStranger(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return func() {
		for _, one := range all {
			one()
		}
	}
}

// hangingLog takes no record before the end of its context, and tells of each that is tried.
type hangingLog struct {
	approvaltest.Log
	tried chan struct{}
}

// Append implements audit.Log.
func (l *hangingLog) Append(ctx context.Context, _ audit.Record) (audit.Record, error) {
	l.tried <- struct{}{}
	<-ctx.Done()
	return audit.Record{}, ctx.Err()
}

// TestOneRefusalWaitsForTheLog, of each caller and route: however many others are refused meanwhile, they are answered at
// once, and nothing of them is held.
func TestOneRefusalWaitsForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
		if err != nil {
			t.Fatal(err)
		}
		log := &hangingLog{tried: make(chan struct{}, 1_000)}
		s := New(Config{Log: log, Tokens: book, Logger: slog.New(slog.DiscardHandler)})
		ask := func() {
			w := httptest.NewRecorder()
			s.serveRoute(route{"GET /v1/sandboxes", holders, nil})(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sandboxes", nil))
			if w.Code != http.StatusUnauthorized {
				t.Errorf("a stranger is told %d", w.Code)
			}
		}
		first := make(chan struct{})
		go func() {
			defer close(first)
			ask()
		}()
		<-log.tried
		began := time.Now()
		for range 2 * backend.UnderwayStrangers {
			ask()
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the others waited for %s", waited)
		}
		<-first
	})
}
