package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestACopyIsAskedAboutWhereItIs: a copy lies on this host, and so does the sandbox in which it can change. Another daemon, which
// $COFFERDAM_HOST or --host names, knows neither. The control names none.
func TestACopyIsAskedAboutWhereItIs(t *testing.T) {
	dir, err := os.MkdirTemp("", "ap") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("COFFERDAM_STATE", filepath.Join(dir, "s"))
	t.Setenv("COFFERDAM_RUNTIME", filepath.Join(dir, "r"))
	t.Setenv(client.EnvHost, "")
	paths, err := config.DefaultPaths()
	if err == nil {
		err = paths.Make()
	}
	if err != nil {
		t.Fatal(err)
	}
	serves := func(socket, boxes string) {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1"}`)) })
		mux.HandleFunc("GET /v1/sandboxes", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"sandboxes":[` + boxes + `]}`)) })
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: mux}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	serves(paths.DaemonSocket(), `{"id":"sb1","run":"run-1","state":"running"}`)
	other := filepath.Join(dir, "other.sock")
	serves(other, "")
	original := filepath.Join(dir, "project")
	if err := os.Mkdir(original, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Make(t.Context(), original, filepath.Join(paths.Workspaces(), "run-1"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := (applyFlags{}).openRunCopy(t.Context(), "run-1"); err == nil {
		t.Fatal("the control: a copy is brought over in which a sandbox writes")
	}
	if _, err := (applyFlags{}).openRunCopy(withRemote(t.Context(), remote{host: "unix://" + other}), "run-1"); err == nil {
		t.Error("the copy of run-1 is brought over while its sandbox writes in it: another daemon was asked")
	}

	// Of a run that --host gave to another daemon of this host, that one is asked, and nobody else can be.
	third := filepath.Join(dir, "third.sock")
	serves(third, `{"id":"sb2","run":"run-2","state":"running"}`)
	for name, c := range map[string]struct{ host, want string }{
		"it has the sandbox":   {third, "still has the sandbox sb2"},
		"it is not there":      {filepath.Join(dir, "gone.sock"), "can't be asked whether it is gone"},
		"control: it has none": {other, ""},
	} {
		w, err := workspace.Make(t.Context(), original, filepath.Join(paths.Workspaces(), "run-2"), nil)
		if err == nil {
			err = w.NoteHost("unix://" + c.host)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = (applyFlags{}).openRunCopy(t.Context(), "run-2")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}
