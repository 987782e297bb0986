package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	engines "github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// manager is the fake of what makes sandboxes, with the little that /v1 needs
// besides, and events.
type manager struct {
	*backendtest.Life

	mu     sync.Mutex // guards what follows
	events []sandbox.Event
	more   chan struct{}       // closed when there is another one
	frames func(*channel.Conn) // of every file; nil: there are files
	growth uint                // of what every file is told to have: ten bytes, doubled so often
}

func (*manager) Settle(context.Context, string) error { return nil }

// Prove has one control that failed.
func (m *manager) Prove(_ context.Context, id string) (attest.Report, error) {
	if _, err := m.Get(id); err != nil {
		return attest.Report{}, err
	}
	return attest.Report{
		Sandbox: id, Twin: "sb-twin", Limits: engine.Limits{Pids: 512}, Tried: engine.Limits{Pids: 48},
		Controls: []attest.Control{{Name: "clock", Outcome: attest.Proved, Says: "no"}, {Name: "user", Outcome: attest.Failed, Says: "root"}},
	}, nil
}

func (*manager) PolicyText(digest string) ([]byte, error) {
	return nil, fault.New(fault.ErrNotFound, "the policy %s is not kept", digest)
}

func (m *manager) happens(e sandbox.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Seq = int64(len(m.events)) + 1
	m.events = append(m.events, e)
	close(m.more)
	m.more = make(chan struct{})
}

// Events implements backend.Sandboxes.
func (m *manager) Events(ctx context.Context, after int64) (<-chan sandbox.Event, error) {
	m.mu.Lock()
	last := int64(len(m.events))
	m.mu.Unlock()
	if after > last {
		return nil, fault.Invalid("the newest event is %d, so there is none after %d", last, after)
	}
	out := make(chan sandbox.Event)
	go func() {
		defer close(out)
		for {
			m.mu.Lock()
			fresh, more := m.events[min(after, int64(len(m.events))):], m.more
			m.mu.Unlock()
			for _, e := range fresh {
				select {
				case out <- e:
					after = e.Seq
				case <-ctx.Done():
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// serving is the whole API over the fake, on a Unix socket and over TCP. Every
// answer is held against api/openapi.yaml.
type serving struct {
	handler  http.Handler // of the wire over the network, for a server of a test's own
	t        *testing.T
	manager  *manager
	book     *token.Book
	policies *namedpolicy.Store
	room     *backend.Room
	log      *audit.FileLog
	url      string         // over TCP
	host     *client.Client // on the socket
}

func serve(t *testing.T) *serving {
	t.Helper()
	return serveWithin(t, 0)
}

// serveWithin gives clients so long to take what they are sent.
func serveWithin(t *testing.T, untaken time.Duration) *serving {
	t.Helper()
	dir := t.TempDir()
	in := &serving{t: t, manager: &manager{Life: backendtest.NewLife(t.TempDir()), more: make(chan struct{})}, room: backend.NewRoom()}
	var err error
	if in.book, err = token.Open(t.Context(), tokentest.NewMemory(), nil); err != nil {
		t.Fatal(err)
	}
	if in.policies, err = namedpolicy.Open(filepath.Join(dir, "named"), in.book.Users); err != nil {
		t.Fatal(err)
	}
	if in.log, err = audit.Open(filepath.Join(dir, "audit"), audit.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.log.Close() })
	x := index.New(filepath.Join(dir, "index.db"), in.log, index.Options{})
	t.Cleanup(func() { _ = x.Close() })
	door := admission.New(admission.Config{Log: in.log})
	calls := jscall.New(jscall.Config{Callers: engines.Callers(filepath.Join(dir, "compiled")), Default: engines.DefaultCaller, Door: door})
	t.Cleanup(func() { _ = calls.Close(context.Background()) })
	h := described(t, httpapi.New(httpapi.Config{
		Calls: calls, Sandboxes: in.manager, Log: in.log, Tokens: in.book, Policies: in.policies, Logger: slog.New(slog.DiscardHandler),
		Door:  door,
		Audit: httpapi.Auditing{Index: x, End: in.log.End},

		Untaken: untaken, Room: in.room,
	}))
	in.handler = h
	over := httptest.NewServer(backend.Hurried(h)) // as the daemon serves it
	t.Cleanup(over.Close)
	in.url = over.URL
	socket := filepath.Join(dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ConnContext: httpapi.ConnContext}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	in.host = client.New(socket)
	return in
}

// as is a client with a new token.
func (in *serving) as(g token.Grant) (*client.Client, token.Token) {
	in.t.Helper()
	made, secret, err := in.book.Issue(in.t.Context(), g)
	if err != nil {
		in.t.Fatal(err)
	}
	return in.with(secret), made
}

// with is a client with a token's secret.
func (in *serving) with(secret string) *client.Client {
	in.t.Helper()
	c, err := client.Open(client.Remote{URL: in.url, Token: secret})
	if err != nil {
		in.t.Fatal(err)
	}
	return c
}

func (in *serving) create(c *client.Client, req api.CreateSandbox) api.Sandbox {
	in.t.Helper()
	box, err := c.CreateSandbox(in.t.Context(), req)
	if err != nil {
		in.t.Fatal(err)
	}
	return box
}

// described holds every answer against the description of its route.
func described(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(api.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc) // numbers and keys as JSON has them
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards the compiler
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept := &keeping{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(kept, r)
		method, path, found := strings.Cut(r.Pattern, " ")
		if !found || kept.taken {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		responses := "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path) + "/" + strings.ToLower(method) + "/responses"
		kept.judge(t, compiler, r.Method+" "+r.URL.Path, responses)
	})
}

// keeping is a response that is remembered.
type keeping struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
	taken  bool // the connection is no HTTP any more
}

func (k *keeping) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *keeping) Write(p []byte) (int, error) {
	k.body.Write(p)
	return k.ResponseWriter.Write(p)
}

// Hijack is for http.ResponseController, too.
func (k *keeping) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	k.taken = true
	return http.NewResponseController(k.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (k *keeping) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keeping) judge(t *testing.T, c *jsonschema.Compiler, what, responses string) {
	t.Helper()
	kind, _, _ := strings.Cut(k.Header().Get("Content-Type"), ";")
	pointer := responses + "/" + strconv.Itoa(k.status)
	if k.status >= http.StatusBadRequest {
		pointer = "#/components/responses/Problem"
	}
	if _, err := c.Compile("openapi.json" + pointer); err != nil {
		t.Errorf("%s: status %d is not described: %v", what, k.status, err)
		return
	}
	if kind == "" {
		if k.body.Len() > 0 {
			t.Errorf("%s: %d bytes of no type", what, k.body.Len())
		}
		return
	}
	content, err := c.Compile("openapi.json" + pointer + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
	if err != nil {
		t.Errorf("%s: the type %s is not described: %v", what, kind, err)
		return
	}
	var values []string
	switch kind {
	case "application/json", "application/problem+json":
		values = []string{k.body.String()}
	case "application/x-ndjson", "application/jsonl":
		values = strings.Split(strings.TrimSpace(k.body.String()), "\n")
	}
	for _, text := range values {
		if text == "" {
			continue
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = content.Validate(value)
		}
		if err != nil {
			t.Errorf("%s: %s\n%v", what, text, err)
		}
	}
}
