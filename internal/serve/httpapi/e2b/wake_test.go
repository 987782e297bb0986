package e2b_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// TestAutoResume: a paused sandbox wakes for whom its client wanted, and for
// nobody else.
func TestAutoResume(t *testing.T) {
	h := newHouse(t)
	if _, err := h.policies.Put("data", "data", []byte("published_ports: [ 8080 ]\n")); err != nil {
		t.Fatal(err)
	}
	data := e2b.NewData(e2b.DataConfig{Sandboxes: h.life, Access: h.keys, Clients: h.book, Log: slog.New(slog.DiscardHandler)})
	const open, shut = "", `,"network":{"allowPublicTraffic":false}`
	for name, c := range map[string]struct {
		create, path, port  string
		token, traffic, not bool
		wakes               bool
	}{
		"files with the token":             {create: open, path: "/files?path=a", port: "49983", token: true, wakes: true},
		"without the token":                {create: open, path: "/files?path=a", port: "49983"},
		"health":                           {create: open, path: "/health", port: "49983", token: true},
		"the interpreter with the token":   {create: open, path: "/execute", port: "49999", token: true, wakes: true},
		"the interpreter without it":       {create: open, path: "/execute", port: "49999", traffic: true},
		"contexts with their token":        {create: open, path: "/contexts", port: "49999", traffic: true, wakes: true},
		"the interpreter's health":         {create: open, path: "/health", port: "49999", token: true},
		"a published port":                 {create: open, path: "/", port: "8080", wakes: true},
		"a port that is not published":     {create: open, path: "/", port: "8081", token: true},
		"a private port":                   {create: shut, path: "/", port: "8080", token: true},
		"a private port, with its token":   {create: shut, path: "/", port: "8080", traffic: true, wakes: true},
		"a client that did not ask for it": {create: open, path: "/files?path=a", port: "49983", token: true, not: true},
	} {
		t.Run(name, func(t *testing.T) {
			fields := `,"timeout":600,"autoPause":true,"metadata":{"policy":"data"}` + c.create
			if !c.not {
				fields += `,"autoResume":{"enabled":true}`
			}
			box := h.create(fields)
			h.must(204, nil, h.ann, "POST /sandboxes/"+box.SandboxID+"/pause", "")
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			r.Header.Set("E2b-Sandbox-Id", box.SandboxID)
			r.Header.Set("E2b-Sandbox-Port", c.port)
			if c.token {
				r.Header.Set("X-Access-Token", box.EnvdAccessToken)
			}
			if c.traffic {
				r.Header.Set("E2b-Traffic-Access-Token", box.TrafficAccessToken)
			}
			data.ServeHTTP(httptest.NewRecorder(), r)
			want := "paused"
			if c.wakes {
				want = "running"
			}
			if got := h.info(box.SandboxID).State; got != want {
				t.Errorf("it is %s, want %s", got, want)
			}
			if c.wakes && h.livesFor(box.SandboxID) != 10*time.Minute {
				t.Errorf("it lives for %v", h.livesFor(box.SandboxID))
			}
		})
	}
}

// TestSleepOn: a request wakes no sandbox whose programs are gone, nor one whose agent was silent.
func TestSleepOn(t *testing.T) {
	h := newHouse(t)
	data := e2b.NewData(e2b.DataConfig{Sandboxes: h.life, Access: h.keys, Clients: h.book, Log: slog.New(slog.DiscardHandler)})
	box := h.create(`,"timeout":600,"autoPause":true,"autoResume":{"enabled":true}`)
	ask := func() {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/files?path=/none", nil)
		r.Header.Set("E2b-Sandbox-Id", box.SandboxID)
		r.Header.Set("X-Access-Token", box.EnvdAccessToken)
		data.ServeHTTP(httptest.NewRecorder(), r)
	}
	inside, err := h.life.Box(box.SandboxID)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body, want string
		silent     bool
	}{{`{"memory":false}`, "paused", false}, {"", "running", false}, {"", "paused", true}} {
		h.must(204, nil, h.ann, "POST /sandboxes/"+box.SandboxID+"/pause", c.body)
		inside.WasSilent(c.silent)
		ask()
		if got := h.info(box.SandboxID).State; got != c.want {
			t.Errorf("paused with %q, after a request it is %s", c.body, got)
		}
		h.ask(h.ann, "POST /v2/sandboxes/"+box.SandboxID+"/connect", "")
	}
}

// slowly wakes no sandbox until it may.
type slowly struct {
	*backendtest.Life

	begun, may chan struct{}
}

func (s slowly) Resume(ctx context.Context, id string) (bool, error) {
	s.begun <- struct{}{}
	<-s.may
	return s.Life.Resume(ctx, id)
}

// TestWhoWakesASandboxIsUnderWay: requests that wait until their sandbox goes on are counted among those of its owner,
// or of its visitors, so that no more of them wait than may be under way.
func TestWhoWakesASandboxIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct{ path, port string }{
		"a file": {"/files?path=a", "49983"}, "the interpreter": {"/contexts", "49999"}, "a published port": {"/", "8080"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			if _, err := h.policies.Put("data", "data", []byte("published_ports: [ 8080 ]\n")); err != nil {
				t.Fatal(err)
			}
			life, underway := slowly{h.life, make(chan struct{}, 2), make(chan struct{})}, backend.NewUnderway()
			data := e2b.NewData(e2b.DataConfig{Sandboxes: life, Access: h.keys, Clients: h.book, Underway: underway, Visits: underway, Log: slog.New(slog.DiscardHandler)})
			box := h.create(`,"timeout":600,"autoPause":true,"autoResume":{"enabled":true},"metadata":{"policy":"data"}`)
			h.must(204, nil, h.ann, "POST /sandboxes/"+box.SandboxID+"/pause", "")
			ask := func() *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
				r.Header.Set("E2b-Sandbox-Id", box.SandboxID)
				r.Header.Set("E2b-Sandbox-Port", c.port)
				r.Header.Set("X-Access-Token", box.EnvdAccessToken)
				w := httptest.NewRecorder()
				data.ServeHTTP(w, r)
				return w
			}
			for range backend.UnderwayEach - 1 {
				leave, err := underway.Join(h.annToken.ID, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				if err != nil {
					t.Fatal(err)
				}
				defer leave()
			}
			first := make(chan struct{})
			go func() {
				defer close(first)
				ask()
			}()
			<-life.begun // the control: the last that may be under way waits
			second := make(chan int, 1)
			go func() { second <- ask().Code }()
			select {
			case status := <-second:
				if status != http.StatusTooManyRequests {
					t.Errorf("one more is told %d", status)
				}
			case <-life.begun:
				t.Error("one more waits for the sandbox, too")
			}
			close(life.may)
			<-first
		})
	}
}

// TestAutoResumeRefused: what may not go on says why.
func TestAutoResumeRefused(t *testing.T) {
	h := newHouse(t)
	data := e2b.NewData(e2b.DataConfig{Sandboxes: h.life, Access: h.keys, Clients: h.book, Log: slog.New(slog.DiscardHandler)})
	box := h.create(`,"autoPause":true,"autoResume":{"enabled":true}`)
	if err := h.life.Become(box.SandboxID, sandbox.Paused); err != nil {
		t.Fatal(err)
	}
	h.life.RefuseResume(box.SandboxID, fault.New(fault.ErrForbidden, "numpy 2.0 is known to be malicious now"))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/files?path=a", nil)
	r.Header.Set("E2b-Sandbox-Id", box.SandboxID)
	r.Header.Set("X-Access-Token", box.EnvdAccessToken)
	w := httptest.NewRecorder()
	data.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "known to be malicious now") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestVisitorsKeepNothingAlive: at a port that is not published they are no use of
// the sandbox, or anybody could keep it from its idle end.
func TestVisitorsKeepNothingAlive(t *testing.T) {
	h := newHouse(t)
	if _, err := h.policies.Put("data", "data", []byte("published_ports: [ 8080 ]\n")); err != nil {
		t.Fatal(err)
	}
	data := e2b.NewData(e2b.DataConfig{Sandboxes: h.life, Access: h.keys, Clients: h.book, Log: slog.New(slog.DiscardHandler)})
	box := h.create(`,"metadata":{"policy":"data"}`)
	visit := func(port string) int {
		before := h.life.Touched(box.SandboxID)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("E2b-Sandbox-Id", box.SandboxID)
		r.Header.Set("E2b-Sandbox-Port", port)
		data.ServeHTTP(httptest.NewRecorder(), r)
		return h.life.Touched(box.SandboxID) - before
	}
	if n := visit("8081"); n != 0 {
		t.Errorf("a port that is not published: %d times", n)
	}
	if n := visit("8080"); n != 1 {
		t.Errorf("a published port: %d times", n)
	}
}

// TestRevokedOwner: with a token all that its holder has got by it is over, also what
// sandboxes serve to others.
func TestRevokedOwner(t *testing.T) {
	h := newHouse(t)
	if _, err := h.policies.Put("data", "data", []byte("published_ports: [ 8080 ]\n")); err != nil {
		t.Fatal(err)
	}
	data := e2b.NewData(e2b.DataConfig{Sandboxes: h.life, Access: h.keys, Clients: h.book, Log: slog.New(slog.DiscardHandler)})
	box := h.create(`,"timeout":600,"metadata":{"policy":"data"}`)
	asleep := h.create(`,"timeout":600,"metadata":{"policy":"data"},"autoPause":true,"autoResume":{"enabled":true}`)
	h.must(204, nil, h.ann, "POST /sandboxes/"+asleep.SandboxID+"/pause", "")
	ask := func(id, access, port, path string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("E2b-Sandbox-Id", id)
		r.Header.Set("E2b-Sandbox-Port", port)
		r.Header.Set("X-Access-Token", access)
		w := httptest.NewRecorder()
		data.ServeHTTP(w, r)
		return w.Code
	}
	every := func(want func(code int) bool) {
		t.Helper()
		for _, c := range [][2]string{{"49983", "/health"}, {"49983", "/files?path=/none"}, {"8080", "/"}} {
			if code := ask(box.SandboxID, box.EnvdAccessToken, c[0], c[1]); !want(code) {
				t.Errorf("port %s %s: %d", c[0], c[1], code)
			}
		}
	}
	every(func(code int) bool { return code != http.StatusUnauthorized })
	if _, err := h.book.Revoke(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	every(func(code int) bool { return code == http.StatusUnauthorized })
	if code := ask(asleep.SandboxID, asleep.EnvdAccessToken, "49983", "/files?path=/none"); code != http.StatusUnauthorized {
		t.Errorf("the paused one: %d", code)
	}
	if sb, err := h.life.Get(asleep.SandboxID); err != nil {
		t.Error(err)
	} else if state, _ := sb.State(); state != sandbox.Paused {
		t.Errorf("it is %s", state)
	}
}
