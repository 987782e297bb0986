package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/webhook"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver answers what it is told to, and keeps what it took.
type receiver struct {
	mu     sync.Mutex // guards all
	answer func(attempt int, r *http.Request) (int, error)
	tries  int
	bodies [][]byte
	heads  []http.Header
}

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.tries++
	attempt, answer := r.tries, r.answer
	r.mu.Unlock()
	status := http.StatusOK
	if answer != nil {
		var err error
		if status, err = answer(attempt, req); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if status == http.StatusOK {
		r.mu.Lock()
		r.bodies, r.heads = append(r.bodies, body), append(r.heads, req.Header)
		r.mu.Unlock()
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("ok")), Request: req}, nil
}

func (r *receiver) events(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, body := range r.bodies {
		var b webhook.Body
		if err := json.Unmarshal(body, &b); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b.Event)+" "+b.Package.Name)
	}
	return all
}

type world struct {
	*approval.Queue
	store    *approvaltest.Memory
	receiver *receiver
	hook     webhook.Hook
}

func install(t *testing.T) *world {
	t.Helper()
	w := &world{
		store: approvaltest.NewMemory(), receiver: &receiver{},
		hook: webhook.Hook{URL: "https://hooks.example/secret-path", Secret: []byte("0123456789abcdef"), Format: webhook.JSON},
	}
	q, err := approval.Open(context.Background(), approval.Config{Store: w.store, Log: &approvaltest.Log{}})
	if err != nil {
		t.Fatal(err)
	}
	w.Queue = q
	t.Cleanup(q.Close)
	return w
}

// run starts a sender; the returned function ends it.
func (w *world) run(t *testing.T) (end func()) {
	t.Helper()
	s, err := webhook.New(webhook.Config{Hooks: []webhook.Hook{w.hook}, Source: w.Queue, Cursors: w.store, Transport: w.receiver})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(end)
	synctest.Wait()
	return end
}

func (w *world) ask(t *testing.T, name string) string {
	t.Helper()
	r, err := w.Ask(t.Context(), approval.Ask{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, Run: "r1",
		Task: "<!channel> *see* http://evil.example/", Because: "line\nbreak \u202e",
		Files: []approval.File{{Name: name, Digests: []string{"sha256:" + name}, Scripts: true}}, Rule: "packages.default", Reason: "no list names it",
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func (w *world) fingerprint(t *testing.T, id string) string {
	t.Helper()
	r, err := w.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Fingerprint()
}

// TestDelivery: what happens is told, in order, signed so that the documented
// way checks it.
func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		w.ask(t, "before") // before the hook was there
		w.run(t)
		id := w.ask(t, "one")
		w.ask(t, "two")
		if _, err := approvaltest.AnswerShown(t.Context(), w.Queue, "bob", approval.Verdict{IDs: []string{id}, State: approval.Approved}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"asked one", "asked two", "approved one"}, w.receiver.events(t)); diff != "" {
			t.Error(diff)
		}
		head, body := w.receiver.heads[2], w.receiver.bodies[2]
		if got, want := head.Get(webhook.HeaderSignature), webhook.Sign(w.hook.Secret, time.Now(), body); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if head.Get(webhook.HeaderEvent) != "approved" || head.Get(webhook.HeaderDelivery) == "" {
			t.Error(head)
		}
		var told webhook.Body
		if err := json.Unmarshal(body, &told); err != nil || told.Revision != 1 || told.AnswerID != id+"@1" || len(told.Owners) != 1 {
			t.Errorf("it does not say what an answer names: %s, %v", body, err)
		}
		if bytes.Contains(body, w.hook.Secret) || bytes.Contains(body, []byte("secret-path")) {
			t.Errorf("%s", body)
		}
	})
}

// TestSign: the signature is what the documentation says.
func TestSign(t *testing.T) {
	t.Parallel()
	// printf '1767225600.{}' | openssl dgst -sha256 -hmac key
	const want = "t=1767225600,v1=df344de429b8ee672e1863e0008fdbd0080000536fbccdf0e4f89846acbbe872"
	got := webhook.Sign([]byte("key"), time.Unix(1767225600, 0), []byte("{}"))
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestRetry: a hook that fails, breaks off or redirects gets the event later, and
// then the ones after it; the queue does not wait for it.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		w.receiver.answer = func(attempt int, _ *http.Request) (int, error) {
			switch {
			case attempt <= 2:
				return http.StatusInternalServerError, nil
			case attempt == 3:
				return 0, errors.New("connection reset")
			case attempt == 4:
				return http.StatusFound, nil
			}
			return http.StatusOK, nil
		}
		w.run(t)
		began := time.Now()
		w.ask(t, "one")
		w.ask(t, "two")
		if time.Since(began) > 0 {
			t.Error("asking waited for the hook")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"asked one", "asked two"}, w.receiver.events(t)); diff != "" || w.receiver.tries != 6 {
			t.Error(diff, w.receiver.tries)
		}
	})
}

// TestRestart: what was not taken when the daemon ended is told by the next one,
// and what was taken is not told again.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		end := w.run(t)
		w.ask(t, "one")
		synctest.Wait()
		w.receiver.answer = func(int, *http.Request) (int, error) { return http.StatusServiceUnavailable, nil }
		w.ask(t, "two")
		synctest.Wait()
		end()
		w.receiver.answer = nil
		w.ask(t, "three")
		w.run(t)
		if diff := cmp.Diff([]string{"asked one", "asked two", "asked three"}, w.receiver.events(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTooOld: a hook that was away for days is not flooded with what is of no
// use any more.
func TestTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		w.receiver.answer = func(int, *http.Request) (int, error) { return http.StatusNotFound, nil }
		w.run(t)
		w.ask(t, "one")
		time.Sleep(20 * time.Hour)
		w.ask(t, "two")
		time.Sleep(6 * time.Hour)
		w.receiver.mu.Lock()
		w.receiver.answer = nil
		tries := w.receiver.tries
		w.receiver.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"asked two"}, w.receiver.events(t)); diff != "" {
			t.Error(diff)
		}
		if tries > 200 {
			t.Errorf("%d tries in 26 hours", tries)
		}
	})
}

// TestChosenEvents: only those that a hook wants.
func TestChosenEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		w.hook.Events = []approval.EventName{approval.EventDenied}
		w.run(t)
		id := w.ask(t, "one")
		if _, err := approvaltest.AnswerShown(t.Context(), w.Queue, "bob", approval.Verdict{IDs: []string{id}, State: approval.Denied}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"denied one"}, w.receiver.events(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSlack: others' text is no markup, no mention, no link.
func TestSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		w.hook.Format, w.hook.Secret = webhook.Slack, nil
		w.run(t)
		id := w.ask(t, "one")
		synctest.Wait()
		var got map[string]any
		if err := json.Unmarshal(w.receiver.bodies[0], &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"mrkdwn": false, "unfurl_links": false, "unfurl_media": false, "text": "python one 1.0 waits for approval (" + id + ", sha256 " + w.fingerprint(t, id) + "): no list names it\n" +
			"Task: &lt;!channel&gt; *see* http: //evil.example/\nThe agent says: line\\nbreak \\u202e\ncofferdam approvals show " + id}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if w.receiver.heads[0].Get(webhook.HeaderSignature) != "" {
			t.Error("signed with no secret")
		}
	})
}

// TestRealServer: over a socket, with a server that hangs and one that redirects
// to another, which must hear nothing.
func TestRealServer(t *testing.T) {
	t.Parallel()
	elsewhere := make(chan string, 9)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere <- r.URL.Path }))
	defer other.Close()
	took := make(chan string, 9)
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			select {
			case <-hangs:
			case <-r.Context().Done():
			}
		case "/redirects":
			http.Redirect(w, r, other.URL+"/elsewhere", http.StatusTemporaryRedirect)
		default:
			took <- r.Header.Get(webhook.HeaderEvent)
		}
	}))
	defer server.Close()
	defer close(hangs)
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: &approvaltest.Log{}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var hooks []webhook.Hook
	for _, path := range []string{"/hangs", "/redirects", "/works"} {
		hooks = append(hooks, webhook.Hook{URL: server.URL + path, Secret: []byte("s"), Format: webhook.JSON})
	}
	logged := &warnings{lines: make(chan string, 99)}
	cursors := &beginnings{Memory: approvaltest.NewMemory(), begun: make(chan string, 99)}
	s, err := webhook.New(webhook.Config{Hooks: hooks, Source: q, Cursors: cursors, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	for range hooks {
		<-cursors.begun // a hook hears what happens from then on
	}
	(&world{Queue: q}).ask(t, "one")
	if event := <-took; event != "asked" {
		t.Error(event)
	}
	if line := <-logged.lines; strings.Contains(line, "/redirects") || !strings.Contains(line, "it answered 307") {
		t.Error(line)
	}
	cancel()
	<-done
	if len(elsewhere) > 0 {
		t.Error("a redirect was followed to", <-elsewhere)
	}
}

// warnings are what is logged.
type warnings struct{ lines chan string }

func (w *warnings) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

// beginnings tells when a hook's place was first noted.
type beginnings struct {
	*approvaltest.Memory
	begun chan string
}

func (b *beginnings) SetCursor(ctx context.Context, hook string, number uint64) error {
	err := b.Memory.SetCursor(ctx, hook, number)
	b.begun <- hook
	return err
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := webhook.Hook{URL: "https://hooks.example/x", Secret: []byte("s"), Format: webhook.JSON}
	for _, u := range []string{"https://hooks.example/x", "http://127.0.0.1:9/x", "http://[::1]/x", "http://localhost/x"} {
		h := good
		h.URL = u
		if err := h.Check(); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for what, spoil := range map[string]func(*webhook.Hook){
		"http":     func(h *webhook.Hook) { h.URL = "http://hooks.example/x" },
		"address":  func(h *webhook.Hook) { h.URL = "http://10.0.0.1/x" },
		"file":     func(h *webhook.Hook) { h.URL = "file:///etc/passwd" },
		"user":     func(h *webhook.Hook) { h.URL = "https://a:hunter2@hooks.example/" },
		"empty":    func(h *webhook.Hook) { h.URL = "" },
		"format":   func(h *webhook.Hook) { h.Format = "xml" },
		"unsigned": func(h *webhook.Hook) { h.Secret = nil },
		"event":    func(h *webhook.Hook) { h.Events = []approval.EventName{"born"} },
	} {
		h := good
		spoil(&h)
		_, err := webhook.New(webhook.Config{Hooks: []webhook.Hook{h}})
		if !errors.Is(err, fault.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
