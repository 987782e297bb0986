package sdk

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// held is a command that waits for a person as soon as it has started.
const held = `echo waiting; read a; echo "on with $a"`

func TestDataJavaScript(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it: the same program speaks to real sandboxes always (TestDaemon)")
	}
	for _, version := range javaScriptVersions() {
		t.Run(version, func(t *testing.T) {
			dir := javaScript(t, version)
			run(t, append(inside(t), "SDK_DIR="+dir), 14, "node", "data.mjs")
		})
	}
}

func TestDataPython(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it: the same program speaks to real sandboxes always (TestDaemon)")
	}
	for _, version := range pythonVersions() {
		t.Run(version, func(t *testing.T) {
			python := python(t, version)
			run(t, inside(t), 13, python, "data.py")
		})
	}
}

// TestDataBinary: the same wire in its other form, with the client below the newest
// SDK, which takes that form by itself.
func TestDataBinary(t *testing.T) {
	t.Parallel()
	python := python(t, "latest")
	run(t, inside(t), 4, python, "binary.py")
}

// tokens are the boxes' access tokens.
type tokens struct{}

func (tokens) Token(id string) string { return "token of " + id }
func (tokens) Traffic(string) string  { return "" }
func (tokens) Contexts(string) string { return "" }

// boxes are pretended sandboxes whose held command waits.
type boxes struct {
	*backendtest.Boxes
	people *backendtest.People
}

func (b boxes) Start(ctx context.Context, id string, c sandbox.Command) (keeper.Command, error) {
	started, err := b.Boxes.Start(ctx, id, c)
	if err == nil && c.Judged == held {
		box, err := b.Box(id)
		if err != nil {
			return started, err
		}
		b.people.Ask("ap-held")
		box.Holds.Held(backendtest.Hold("ap-held", true))
	}
	return started, err
}

// inside serves the data plane of boxes that have an inside, with as little of a
// control plane as the programs need, and returns the environment to find it by.
func inside(t *testing.T) []string {
	t.Helper()
	all := boxes{&backendtest.Boxes{}, &backendtest.People{}}
	nobody, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	data := e2b.NewData(e2b.DataConfig{Sandboxes: all, Access: tokens{}, Clients: nobody, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case data.Owns(r):
			data.ServeHTTP(w, r)
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sandboxes"):
			id := all.make(t)
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(map[string]string{
				"sandboxID": id, "templateID": "base", "clientID": "none", "envdVersion": e2b.EnvdVersion, "envdAccessToken": tokens{}.Token(id),
			})
		case r.Method == http.MethodDelete:
			_ = all.Destroy(r.Context(), path.Base(r.URL.Path))
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/test/answer":
			all.people.Answer()
			for _, box := range all.All() {
				box.AwaitState(r.Context(), suspend.Running)
			}
		default:
			w.WriteHeader(http.StatusNotImplemented)
		}
	}))
	t.Cleanup(server.Close)
	return append(os.Environ(), "E2B_API_URL="+server.URL, "E2B_SANDBOX_URL="+server.URL, "E2B_API_KEY=e2b_"+strings.Repeat("0", 40), "DATA_HELD="+held)
}

func (b boxes) make(t *testing.T) string {
	t.Helper()
	id := "sb" + strings.ToLower(newRun())
	root := t.TempDir()
	home := filepath.Join(root, "home", "user")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Error(err)
	}
	files := &backendtest.Files{Root: root, Home: "/home/user"}
	waits := b.people.Waits(t.Context(), id, t.TempDir())
	box := &backendtest.Box{
		StandIn: sandbox.NewStandIn(sandbox.Info{ID: id, Account: sandbox.Account{Name: "user", Home: "/home/user"}}, nil, waits),
		Files:   files, Commands: &backendtest.Commands{Files: files, Env: append(os.Environ(), "HOME="+home)},
		Holds: waits, Refuse: "forbidden thing",
	}
	t.Cleanup(box.Commands.Kill)
	b.Add(box)
	return id
}
