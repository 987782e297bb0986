package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newTelemetry(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(telemetry.Config{Version: "1", Log: quiet()})
	must(t, err)
	return tel
}

// named answers with its name.
type named string

func (n named) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, string(n)) }

// book knows the secrets that begin with "good".
type book struct{}

func (book) Check(secret string) (token.Token, bool) {
	return token.Token{ID: secret}, strings.HasPrefix(secret, "good")
}

// newFront is a front whose wires answer with their names, and which knows the
// sandboxes sb1 and sb2.
func newFront(t *testing.T, perSecond float64, burst int) *front {
	t.Helper()
	return &front{
		wires: apiHandlers{
			control: named("control"), data: named("data"), v1: named("v1"), mcp: named("mcp"),
			owns:  func(r *http.Request) bool { return r.URL.Query().Has("signature") },
			holds: func(r *http.Request, sandbox string) bool { return r.Header.Get("X-Access-Token") == "of "+sandbox },
		},
		health: &health{checks: []check{{"well", func(context.Context) error { return nil }}}},
		domain: "sandbox.example", telemetry: newTelemetry(t), log: quiet(), pace: newPace(perSecond, burst),
		tokens: book{}, ownerOf: func(id string) (string, bool) { return "", id == "sb1" || id == "sb2" },
	}
}

func ask(t *testing.T, h http.Handler, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	change(r)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	h := newFront(t, 1e6, 1e6).handler()
	for _, c := range []struct{ host, path, sandbox, want string }{
		{"127.0.0.1:7433", "/sandboxes", "", "control"},
		{"127.0.0.1:7433", "/v2/sandboxes", "", "control"},
		{"127.0.0.1:7433", "/health", "", "control"},
		{"127.0.0.1:7433", "/v1", "", "v1"},
		{"127.0.0.1:7433", "/v1/sandboxes", "", "v1"},
		{"127.0.0.1:7433", "/v10/x", "", "control"},
		{"127.0.0.1:7433", "/mcp", "", "mcp"},
		{"127.0.0.1:7433", "/mcp/x", "", "control"},
		{"127.0.0.1:7433", "/mcp", "sb1", "data"},
		{"127.0.0.1:7433", "/files?path=a", "", "control"},
		{"127.0.0.1:7433", "/files?path=a&signature=v1_x", "", "data"},
		{"127.0.0.1:7433", "/health", "sb1", "data"},
		{"127.0.0.1:7433", "/v1/sandboxes", "sb1", "data"},
		{"127.0.0.1:7433", "/readyz", "sb1", "data"},
		{"127.0.0.1:7433", "/healthz", "", "ok\n"},
		{"127.0.0.1:7433", "/readyz", "", "well: ok\n"},
		{"3000-sb1.sandbox.example", "/v1/sandboxes", "", "data"},
		{"3000-SB1.Sandbox.Example:7433", "/healthz", "", "data"},
		{"3000-sb1.sandbox.example.", "/", "", "data"},
		{"3000-sb1-client.sandbox.example", "/healthz", "", "data"},
		{"3000-sb1-.sandbox.example", "/", "", "control"},
		{"sandbox.example", "/", "", "control"},
		{"api.sandbox.example", "/v1/x", "", "v1"},
		{"3000-sb1.evil.example", "/", "", "control"},
		{"3000-sb1sandbox.example", "/", "", "control"},
		{"3000-a.b.sandbox.example", "/", "", "control"},
		{"300000-sb1.sandbox.example", "/", "", "control"},
		{"x-sb1.sandbox.example", "/", "", "control"},
	} {
		w := ask(t, h, func(r *http.Request) {
			r.Host, r.RequestURI = c.host, c.path
			u, err := r.URL.Parse(c.path)
			must(t, err)
			r.URL = u
			if c.sandbox != "" {
				r.Header.Set(sandboxHeader, c.sandbox)
			}
		})
		if w.Code != http.StatusOK || w.Body.String() != c.want {
			t.Errorf("%s%s (%s): %d %q, want %q", c.host, c.path, c.sandbox, w.Code, w.Body, c.want)
		}
	}
}

func TestWiresThatAreNotThere(t *testing.T) {
	t.Parallel()
	f := newFront(t, 1e6, 1e6)
	f.wires, f.tokens = apiHandlers{}, nil
	w := ask(t, f.handler(), func(r *http.Request) { r.Header.Set("X-Api-Key", "good") })
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"message":"this daemon does not speak`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestReasonsStayOnTheHost: over TCP a failed check has no reason.
func TestReasonsStayOnTheHost(t *testing.T) {
	t.Parallel()
	f := newFront(t, 1e6, 1e6)
	var asked atomic.Int64
	f.health = &health{checks: []check{
		{"log", func(context.Context) error { asked.Add(1); return errors.New("/secret/path is full") }},
		{"keeper", func(context.Context) error { return nil }},
	}}
	over := ask(t, f.handler(), func(r *http.Request) { r.URL.Path = "/readyz" })
	if over.Code != http.StatusServiceUnavailable || over.Body.String() != "log: failed\nkeeper: ok\n" {
		t.Errorf("TCP: %d %q", over.Code, over.Body)
	}
	admin := ask(t, f.health.serveReady(true), func(*http.Request) {})
	if admin.Code != http.StatusServiceUnavailable || admin.Body.String() != "log: /secret/path is full\nkeeper: ok\n" {
		t.Errorf("admin: %d %q", admin.Code, admin.Body)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("two looks at once asked %d times", n)
	}
}

// TestPace: who asks too fast is told when to come back, and nobody else is.
func TestPace(t *testing.T) {
	t.Parallel()
	const burst = 8
	h := newFront(t, 0.001, burst).handler()
	type client func(*http.Request)
	key := func(secret string) client { return func(r *http.Request) { r.Header.Set("X-Api-Key", secret) } }
	from := func(address string) client { return func(r *http.Request) { r.RemoteAddr = address + ":1" } }
	for _, c := range []struct {
		name  string
		ask   client
		burst int
	}{
		{"a token", key("good1"), burst},
		{"another", key("good2"), burst},
		{"a token as a bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer good3") }, burst},
		{"a stranger", from("192.0.2.1"), burst / 4},
		{"another address", from("192.0.2.2"), burst / 4},
		{"guesses of one address", func(r *http.Request) {
			from("192.0.2.3")(r)
			r.Header.Set("X-Api-Key", "bad"+strconv.Itoa(int(guess.Add(1))))
		}, burst / 4},
		{"who knows a sandbox's name", func(r *http.Request) {
			from("192.0.2.5")(r)
			r.Header.Set(sandboxHeader, "sb1")
			r.Header.Set("X-Access-Token", "of sb2")
		}, burst / 4},
		{"a sandbox", func(r *http.Request) {
			r.Header.Set(sandboxHeader, "sb1")
			r.Header.Set("X-Access-Token", "of sb1")
		}, 5 * burst},
		{"its port", func(r *http.Request) { r.Host = "80-sb1.sandbox.example" }, 5 * burst},
		{"a sandbox as older clients name it", func(r *http.Request) {
			r.Header.Set(sandboxHeader, "sb2-client")
			r.Header.Set("X-Access-Token", "of sb2")
		}, 5 * burst},
		{"its port, in the same way", func(r *http.Request) { r.Host = "80-sb2-client.sandbox.example" }, 5 * burst},
		{"a sandbox with two clients", func(r *http.Request) {
			from("192.0.2.6")(r)
			r.Header.Set(sandboxHeader, "sb2-one-two")
			r.Header.Set("X-Access-Token", "of sb2-one-two")
		}, burst / 4},
		{"sandboxes that are not there", func(r *http.Request) {
			from("192.0.2.4")(r)
			r.Header.Set(sandboxHeader, "sb"+strconv.Itoa(int(guess.Add(1))+10))
		}, burst / 4},
	} {
		accepted := 0
		var last *httptest.ResponseRecorder
		for range 6 * burst {
			if last = ask(t, h, c.ask); last.Code != http.StatusOK {
				break
			}
			accepted++
		}
		after, err := strconv.Atoi(last.Header().Get("Retry-After"))
		if accepted != c.burst || last.Code != http.StatusTooManyRequests || err != nil || after < 1 {
			t.Errorf("%s: %d let in (want %d), then %d, Retry-After %q", c.name, accepted, c.burst, last.Code, last.Header().Get("Retry-After"))
		}
		if want := strconv.FormatBool(after <= 10); last.Header().Get("Should-Retry") != want {
			t.Errorf("%s: Should-Retry %q, want %q after %d s", c.name, last.Header().Get("Should-Retry"), want, after)
		}
	}
	if w := ask(t, h, func(r *http.Request) { r.URL.Path, r.RemoteAddr = "/healthz", "192.0.2.1:1" }); w.Code != http.StatusOK {
		t.Errorf("health: %d", w.Code)
	}
}

// TestRefusalsAreKeptBack: who does not heed its pace is answered late, unless too many
// are kept back already; who gives up is not waited for.
func TestRefusalsAreKeptBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFront(t, 0.001, 1)
		h := f.handler()
		refused := func(ctx context.Context) time.Duration {
			t.Helper()
			began := time.Now()
			w := ask(t, h, func(r *http.Request) {
				*r = *r.WithContext(ctx)
				r.Header.Set("X-Api-Key", "good1")
			})
			if w.Code != http.StatusTooManyRequests {
				t.Errorf("answered with %d", w.Code)
			}
			return time.Since(began)
		}
		ask(t, h, func(r *http.Request) { r.Header.Set("X-Api-Key", "good1") })
		if took := refused(t.Context()); took != refusalTime {
			t.Errorf("a refusal was kept back for %v, want %v", took, refusalTime)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if took := refused(gone); took != 0 {
			t.Errorf("a refusal that nobody waits for was kept back for %v", took)
		}
		f.slowed.Store(refusalsHeld)
		if took := refused(t.Context()); took != 0 {
			t.Errorf("one refusal too many was kept back for %v", took)
		}
		if n := f.slowed.Load(); n != refusalsHeld {
			t.Errorf("%d are counted, want %d", n, refusalsHeld)
		}
	})
}

var guess atomic.Int64

// TestPaceHasAnEnd: who comes often is kept when many others come once.
func TestPaceHasAnEnd(t *testing.T) {
	t.Parallel()
	p := newPace(0.001, 1)
	if _, ok := p.allowRequest("often", 1); !ok {
		t.Fatal("the first is refused")
	}
	for i := range 3 * maxPaced {
		p.allowRequest(fmt.Sprint("once", i), 1)
		if i%1_000 == 0 {
			if _, ok := p.allowRequest("often", 1); ok {
				t.Fatalf("forgotten after %d others", i)
			}
		}
	}
	if n := len(p.recent) + len(p.old); n > 2*maxPaced {
		t.Errorf("%d are kept", n)
	}
}

func TestPanicsAreAnsweredAndTold(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	f := newFront(t, 1e6, 1e6)
	f.log = slog.New(slog.NewTextHandler(&log, nil))
	f.wires.control = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret inside") })
	w := ask(t, f.handler(), func(r *http.Request) { r.Header.Set(requestHeader, "my-request.1") })
	body := w.Body.String()
	if w.Code != http.StatusInternalServerError || strings.Contains(body, "secret inside") || !strings.Contains(body, "my-request.1") {
		t.Errorf("%d %s", w.Code, body)
	}
	if !strings.Contains(log.String(), "secret inside") || !strings.Contains(log.String(), "listeners_test.go") {
		t.Errorf("the log: %s", log.String())
	}
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			t.Error("a handler that means to cut the connection is answered for")
		}
	}()
	f = newFront(t, 1e6, 1e6)
	f.wires.control = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	ask(t, f.handler(), func(*http.Request) {})
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	h := identified(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen[telemetry.RequestID(r.Context())] = true }))
	for _, sent := range []string{"", "abc-1.X_y", "a b", strings.Repeat("a", 65), "a\x7f", "ä"} {
		got := ask(t, h, func(r *http.Request) { r.Header.Set(requestHeader, sent) }).Header().Get(requestHeader)
		if kept := got == sent; kept != (sent == "abc-1.X_y") || got == "" || !seen[got] {
			t.Errorf("%q became %q", sent, got)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d ids", len(seen))
	}
}

func TestPortZeroIsWhicheverIsFree(t *testing.T) {
	t.Parallel()
	opened := &net.TCPAddr{IP: net.IPv6loopback, Port: 4711}
	for configured, want := range map[string]string{"127.0.0.1:0": "127.0.0.1:4711", ":0": ":4711", "[::1]:4711": "[::1]:4711", "localhost:0": "localhost:4711"} {
		if got := portOf(configured, opened); got != want {
			t.Errorf("%s: %s", configured, got)
		}
	}
}
