package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	box := api.Sandbox{ID: "sb-1", Run: "r", State: "running"}
	var got api.CreateSandbox
	c := daemon(t, map[string]http.HandlerFunc{
		"GET /v1/version": reply(http.StatusOK, api.Version{Version: "1", PID: 7}),
		"POST /v1/sandboxes": func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&got)
			reply(http.StatusCreated, box)(w, r)
		},
		"GET /v1/sandboxes":                  reply(http.StatusOK, api.SandboxPage{Sandboxes: []api.Sandbox{box}}),
		"GET /v1/sandboxes/sb-1":             reply(http.StatusOK, box),
		"DELETE /v1/sandboxes/sb-1":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"POST /v1/sandboxes/sb-1/commands":   reply(http.StatusCreated, api.Command{ID: "c1"}),
		"GET /v1/sandboxes/sb-1/commands/c1": reply(http.StatusOK, api.Command{ID: "c1", Exit: &api.Exit{Code: 3}}),
		"GET /v1/runs/{run}/summary":         reply(http.StatusOK, api.RunSummary{Run: "a/b"}),
		"GET /v1/runs/r/suggest":             reply(http.StatusOK, api.Suggestion{Diff: "d"}),
		"GET /v1/templates":                  reply(http.StatusOK, []api.Template{{Name: "host"}}),
		"DELETE /v1/templates/host":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"POST /v1/shutdown":                  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	})
	ctx := t.Context()
	want := api.CreateSandbox{Run: "r", Policy: api.Policy{Source: "/p", Document: []byte("a: b")}, Env: map[string]string{"A": "1"}}
	for name, call := range map[string]func() (any, any, error){
		"version": func() (any, any, error) { v, err := c.Version(ctx); return v, api.Version{Version: "1", PID: 7}, err },
		"list":    func() (any, any, error) { v, err := c.Sandboxes(ctx); return v, []api.Sandbox{box}, err },
		"get":     func() (any, any, error) { v, err := c.Sandbox(ctx, "sb-1"); return v, box, err },
		"create":  func() (any, any, error) { v, err := c.CreateSandbox(ctx, want); return v, box, err },
		"destroy": func() (any, any, error) { return nil, nil, c.DestroySandbox(ctx, "sb-1") },
		"start": func() (any, any, error) {
			v, err := c.StartCommand(ctx, "sb-1", api.StartCommand{})
			return v.ID, "c1", err
		},
		"command":  func() (any, any, error) { v, err := c.Command(ctx, "sb-1", "c1"); return v.Exit.Code, 3, err },
		"summary":  func() (any, any, error) { v, err := c.RunSummary(ctx, "a/b"); return v.Run, "a/b", err },
		"suggest":  func() (any, any, error) { v, err := c.Suggest(ctx, "r"); return v.Diff, "d", err },
		"list t":   func() (any, any, error) { v, err := c.Templates(ctx); return len(v), 1, err },
		"remove t": func() (any, any, error) { return nil, nil, c.RemoveTemplate(ctx, "host") },
		"shutdown": func() (any, any, error) { return nil, nil, c.Shutdown(ctx, false) },
	} {
		answer, expected, err := call()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(expected, answer); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the daemon got:\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{
		"POST /v1/shutdown":      refusal(http.StatusConflict, "2 sandboxes are alive"),
		"GET /v1/sandboxes/text": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusTeapot) },
		"GET /v1/sandboxes/long": refusal(http.StatusNotFound, strings.Repeat("x", 1<<20)),
		"GET /v1/templates":      lines("no JSON"),
	})
	err := c.Shutdown(t.Context(), false)
	if client.StatusOf(err) != http.StatusConflict || err.Error() != "2 sandboxes are alive" {
		t.Errorf("a refusal: %v", err)
	}
	for id, status := range map[string]int{"text": http.StatusTeapot, "long": http.StatusNotFound, "none": http.StatusNotFound} {
		if _, err := c.Sandbox(t.Context(), id); client.StatusOf(err) != status || len(err.Error()) > 100 {
			t.Errorf("%s: status %d, %v", id, client.StatusOf(err), err)
		}
	}
	if _, err := c.Templates(t.Context()); err == nil || client.StatusOf(err) != 0 {
		t.Errorf("an answer that is no JSON: %v", err)
	}
}

func TestNoDaemon(t *testing.T) {
	t.Parallel()
	c := client.New(filepath.Join(t.TempDir(), "none"))
	if _, err := c.Version(t.Context()); !errors.Is(err, client.ErrNoDaemon) {
		t.Errorf("a call: %v", err)
	}
	if _, err := c.Attach(t.Context(), "s", "c", 0); !errors.Is(err, client.ErrNoDaemon) {
		t.Errorf("an attachment: %v", err)
	}
}

// TestAnAddressThatCantBeDialledIsNamed: the system's sentence alone does not say what was asked.
func TestAnAddressThatCantBeDialledIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 200)) // longer than a socket's name may be
	_, err := client.New(path).Version(t.Context())
	if err == nil || errors.Is(err, client.ErrNoDaemon) || !strings.Contains(err.Error(), "the daemon at "+path+" can't be reached: ") {
		t.Errorf("an address that can't be dialled: %v", err)
	}
}

// TestDaemonGoesAway: whether a call had an effect is not known then.
func TestDaemonGoesAway(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{
		"POST /v1/sandboxes": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"GET /v1/sandboxes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "[{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	})
	if _, err := c.CreateSandbox(t.Context(), api.CreateSandbox{}); !errors.Is(err, client.ErrLost) {
		t.Errorf("before the answer: %v", err)
	}
	if _, err := c.Sandboxes(t.Context()); !errors.Is(err, client.ErrLost) {
		t.Errorf("within the answer: %v", err)
	}
}

func TestContextEndsACall(t *testing.T) {
	t.Parallel()
	arrived, given := make(chan struct{}), make(chan struct{})
	c := daemon(t, map[string]http.HandlerFunc{"POST /v1/sandboxes": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server watches the connection from the body's end on
		close(arrived)
		<-r.Context().Done()
		close(given)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := c.CreateSandbox(ctx, api.CreateSandbox{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	<-given // the daemon knows
}

func TestRecords(t *testing.T) {
	t.Parallel()
	var query string
	c := daemon(t, map[string]http.HandlerFunc{"GET /v1/audit/records": func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		switch r.URL.Query().Get("run") {
		case "cut":
			w.Header().Set("Content-Length", "100")
		case "bad":
			lines("{\"seq\":0}\nnot json\n{\"seq\":2}\n")(w, r)
			return
		}
		lines("{\"seq\":0}\n{\"seq\":1}\n")(w, r)
	}})
	read := func(f client.RecordFilter) (seqs []string, failure error) {
		for line, err := range c.Records(t.Context(), f) {
			if err != nil {
				return seqs, err
			}
			seqs = append(seqs, strings.TrimSpace(string(line)))
		}
		return seqs, nil
	}
	got, err := read(client.RecordFilter{Run: "r", Kinds: []string{"a", "b"}, Outcomes: []string{"c"}, Sandbox: "s", From: 7})
	if diff := cmp.Diff([]string{`{"seq":0}`, `{"seq":1}`}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if want := "from=7&kind=a&kind=b&outcome=c&run=r&sandbox=s"; query != want {
		t.Errorf("the query is %q, want %q", query, want)
	}
	for _, run := range []string{"cut", "bad"} {
		if got, err := read(client.RecordFilter{Run: run}); err == nil || len(got) == 0 {
			t.Errorf("%s: %v, %v", run, got, err)
		}
	}
	for range c.Records(t.Context(), client.RecordFilter{}) {
		break // must not leave anything running
	}
}

func TestBuildTemplate(t *testing.T) {
	t.Parallel()
	c := daemon(t, map[string]http.HandlerFunc{
		"POST /v1/templates/good": lines(`{"step":"a","percent":5}` + "\n" + `{"step":"b"}` + "\n" + `{"done":{"name":"good"}}`),
		"POST /v1/templates/fail": lines(`{"step":"a"}` + "\n" + `{"error":"no space left"}`),
		"POST /v1/templates/cut":  lines(`{"step":"a"}` + "\n" + `{"ste`),
		"POST /v1/templates/none": refusal(http.StatusNotFound, "there is no such template"),
	})
	for name, test := range map[string]struct {
		steps int
		want  string // in the error; "" is success
	}{"good": {2, ""}, "fail": {1, "no space left"}, "cut": {1, "connection to the daemon was lost"}, "none": {0, "there is no such template"}} {
		steps := 0
		built, err := c.BuildTemplate(t.Context(), name, func(api.TemplateEvent) { steps++ })
		if steps != test.steps {
			t.Errorf("%s: %d steps, want %d", name, steps, test.steps)
		}
		if test.want == "" && (err != nil || built.Name != name) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %+v, %v", name, built, err)
		}
	}
}
