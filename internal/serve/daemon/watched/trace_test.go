package watched_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon/watched"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// bold is the fake engine, which says that it isolates: the manager makes no
// sandbox with it otherwise. Its PID 1 is a guest agent in this test's binary.
type bold struct {
	engine.Engine
	t   *testing.T
	dir string
}

func (bold) Capabilities(context.Context) (engine.Capabilities, error) {
	return engine.Capabilities{Enforces: []engine.Control{engine.ControlNoNetwork, engine.ControlReadOnlyRoot}}, nil
}

func (b bold) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	spec.Init, spec.Mounts = enginetest.PlainInit(b.t, filepath.Join(b.dir, "root-"+spec.ID)), nil
	return b.Engine.Create(ctx, spec)
}

// shelf has one template.
type shelf struct{ root string }

func (s shelf) Get(context.Context, string) (template.Template, error) {
	return template.Template{
		Name: "test", Digest: "sha256:00", Root: engine.Root{Kind: engine.RootDir, Path: s.root},
		Env: map[string]string{"PATH": os.Getenv("PATH")}, User: "agent", Home: "/tmp",
	}, nil
}

func (s shelf) Generation(ctx context.Context, name, _ string) (template.Template, error) {
	return s.Get(ctx, name)
}

// nobody waits for anything.
type nobody struct{}

func (nobody) Pending(context.Context, []string) ([]string, <-chan struct{}, error) {
	return nil, make(chan struct{}), nil
}

// world is a manager, a door, a queue and a log as a daemon joins them, with a
// telemetry that keeps its spans.
type world struct {
	t       *testing.T
	tel     *telemetry.Telemetry
	traces  string // the file of them
	queue   *approval.Queue
	door    door.Door
	manager *sandbox.Manager
	policy  *policy.Policy
	text    []byte
}

const document = "name: t\npackages: { default: hold, on_hold: wait 60s }\nallowed_packages: { python: [ { name: six } ] }\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "tel") //nolint:usetesting // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	w := &world{t: t, traces: filepath.Join(dir, "traces"), text: []byte(document)}
	w.tel, err = telemetry.New(telemetry.Config{Version: "1", Log: quiet(), Traces: telemetry.Traces{Ratio: 1, File: w.traces}})
	must(t, err)
	w.policy, err = policy.Parse("test", w.text)
	must(t, err)
	file, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	log := watched.Log(file, w.tel)
	w.queue, err = approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: log, Logger: quiet()})
	must(t, err)
	t.Cleanup(w.queue.Close)
	controller := admission.New(admission.Config{Log: log, Approvals: watched.Queue(w.queue, w.tel)})
	w.door = w.tel.Door(controller)
	w.manager = newManager(t, dir, controller, watched.Observer(w.tel))
	return w
}

func newManager(t *testing.T, dir string, controller *admission.Controller, o sandbox.Observer) *sandbox.Manager {
	t.Helper()
	for _, name := range []string{"policies", "baselines", "agent", "frozen"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	k := enginetest.StartKeeper(t, filepath.Join(dir, "keeper.sock"))
	m := sandbox.New(sandbox.Config{
		Engines:       map[string]engine.Engine{fake.Name: bold{fake.New(filepath.Join(dir, "state"), k), t, dir}},
		DefaultEngine: fake.Name, Keeper: k, Templates: shelf{dir}, Door: controller,
		Trust: func(context.Context) ([]byte, []string, error) {
			return []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"), nil, nil
		},
		ClientEnv: func() map[string]string { return nil }, AgentDir: filepath.Join(dir, "agent"), EmptyFile: os.DevNull,
		PolicyDir: filepath.Join(dir, "policies"), BaselineDir: filepath.Join(dir, "baselines"), DefaultTemplate: "test",
		Queue: nobody{}, Shelf: suspend.NewShelf(filepath.Join(dir, "frozen"), suspend.Room{}), FreezeAfter: time.Hour,
		Log: quiet(), Observer: o,
	})
	t.Cleanup(m.Close)
	return m
}

// api is a wire with one route, which makes a sandbox and starts a command.
func (w *world) api(started chan<- keeper.Command, made chan<- *sandbox.Sandbox) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/go/{what}", func(_ http.ResponseWriter, r *http.Request) {
		sb, err := w.manager.Create(r.Context(), sandbox.Request{Run: "run-1", Policy: w.policy, PolicyText: w.text})
		if err != nil {
			w.t.Error(err)
			close(made)
			return
		}
		made <- sb
		command, err := w.manager.Start(r.Context(), sb.Info().ID, sandbox.Command{Argv: []string{"/bin/true"}, Dir: "/"})
		if err != nil {
			w.t.Error(err)
		}
		started <- command
	})
	return w.tel.HTTP("v1", mux)
}

func wheel() door.Bytes { return door.Bytes{SHA256: strings.Repeat("ab", 32), Size: 1_000} }

func askFor(sandbox, name string) door.FileAsk {
	return door.FileAsk{
		Sandbox: sandbox, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"},
		File: door.File{
			Name: name + "-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel,
			Digest: "sha256:" + strings.Repeat("ab", 32), Published: time.Now().AddDate(-1, 0, 0),
		},
		SourceURL: "https://files.example/" + name,
	}
}

// answerOnce approves the first request that comes.
func (w *world) answerOnce(ctx context.Context) {
	for e, err := range w.queue.Watch(ctx, 0) {
		if err != nil {
			w.t.Error(err)
			return
		}
		if _, err := approvaltest.AnswerShown(ctx, w.queue, "somebody", approval.Verdict{IDs: []string{e.Request.ID}, State: approval.Approved, Reason: "secret-reason"}); err != nil {
			w.t.Error(err)
		}
		return
	}
}

// TestOneTrace: a client's request, the sandbox, its command, the decisions about
// what that asks for and the person who is waited for are one trace, which is the
// client's.
func TestOneTrace(t *testing.T) {
	w := newWorld(t)
	made, started := make(chan *sandbox.Sandbox, 1), make(chan keeper.Command, 1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/go/anywhere", nil)
	const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.Header.Set("Traceparent", client)
	w.api(started, made).ServeHTTP(httptest.NewRecorder(), r)
	sb := <-made
	if sb == nil {
		t.FailNow()
	}
	command := <-started
	defer func() { must(t, w.manager.Destroy(context.WithoutCancel(t.Context()), sb.Info().ID)) }()

	go w.answerOnce(t.Context())
	wait := door.AwaitAsk{FileAsk: askFor(sb.Info().ID, "rich"), Bytes: wheel()}
	answer, err := w.door.Await(t.Context(), wait) // as the gateway's call comes: of no trace
	must(t, err)
	if !answer.Decision.Allowed() {
		t.Fatalf("the answer: %+v", answer)
	}
	_, err = w.door.Serve(t.Context(), door.ServeAsk{FileAsk: askFor(sb.Info().ID, "six"), Bytes: wheel()})
	must(t, err)

	must(t, w.tel.Close(t.Context()))
	spans := map[string]span{}
	for _, s := range w.spans() {
		spans[s.Name] = s
		if s.Trace != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in the trace %s", s.Name, s.Trace)
		}
	}
	for child, parent := range map[string]string{
		"sandbox create": "v1 POST /v1/go/{what}", "sandbox exec": "v1 POST /v1/go/{what}",
		"decide await": "sandbox exec", "hold": "decide await", "decide serve": "sandbox exec",
	} {
		if got, want := spans[child].Parent, spans[parent].ID; got == "" || got != want {
			t.Errorf("%s is a child of %s, want one of %s (%s)", child, got, parent, want)
		}
	}
	if got := spans["v1 POST /v1/go/{what}"].Parent; got != "b7ad6b7169203331" {
		t.Errorf("the request is a child of %s, not of the client's span", got)
	}
	says(t, spans["sandbox exec"], "cofferdam.sandbox", sb.Info().ID)
	says(t, spans["sandbox exec"], "cofferdam.run", "run-1")
	says(t, spans["sandbox exec"], "cofferdam.command", command.ID)
	says(t, spans["hold"], "cofferdam.answer", "approved")
	says(t, spans["decide serve"], "cofferdam.package", "six")
	says(t, spans["decide serve"], "cofferdam.effect", "allow")
	says(t, spans["decide serve"], "cofferdam.rule", "allowed_packages.python.six")
	nothingPersonal(t, w.spans())
}

// span is one of the file of traces, which has OTLP's JSON.
type span struct {
	Name       string `json:"name"`
	Trace      string `json:"traceId"`
	ID         string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Attributes []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	} `json:"attributes"`
}

// spans are all that were handed out, once the telemetry is closed.
func (w *world) spans() (all []span) {
	w.t.Helper()
	text, err := os.ReadFile(w.traces)
	must(w.t, err)
	for line := range bytes.Lines(text) {
		var batch struct {
			Resources []struct {
				Scopes []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		must(w.t, json.Unmarshal(line, &batch))
		for _, r := range batch.Resources {
			for _, s := range r.Scopes {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

func says(t *testing.T, s span, key, want string) {
	t.Helper()
	for _, a := range s.Attributes {
		if a.Key == key {
			if a.Value["stringValue"] != want {
				t.Errorf("%s says %s=%v, want %s", s.Name, key, a.Value, want)
			}
			return
		}
	}
	t.Errorf("%s does not say %s", s.Name, key)
}

// nothingPersonal: who answered and why, what was run and from where stay in the
// log.
func nothingPersonal(t *testing.T, spans []span) {
	t.Helper()
	for _, s := range spans {
		for _, a := range s.Attributes {
			for _, private := range []string{"somebody", "secret-reason", "/bin/true", "files.example", "anywhere"} {
				if strings.Contains(fmt.Sprint(a.Value), private) {
					t.Errorf("%s says %s=%v", s.Name, a.Key, a.Value)
				}
			}
		}
	}
}
