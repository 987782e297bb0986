package main

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// TestAListAnswersWhose: whose a sandbox is, under which policy, how old, how large and for what it waits, in one line, and
// what is not known has a mark of its own.
func TestAListAnswersWhose(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	boxes := []listedSandbox{
		{Sandbox: api.Sandbox{
			ID: "sb1", Run: "nightly", State: "running", Template: "debian", Engine: "gvisor", Policy: "sha256:0123456789abcdef", PolicyName: "team",
			Token: "tok-1", TokenName: "ci", Created: now.Add(-90 * time.Minute), Holds: []api.Hold{{Request: "ap-x", Package: "python six 1"}},
		}, Usage: &api.Usage{MemoryBytes: 30_000_000, MemoryLimit: 2 << 30}},
		{Sandbox: api.Sandbox{ID: "sb2", Run: "r", State: "paused", Template: "debian", Engine: "gvisor", Policy: "sha256:0123456789abcdef", Token: "tok-2", Created: now}},
		{Sandbox: api.Sandbox{ID: "sb3", Run: "r", State: "running", Template: "debian", Engine: "runc", Created: now}},
	}
	var text strings.Builder
	if err := writeSandboxes(&text, boxes, now); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	for i, want := range []string{
		"SANDBOX RUN STATE TEMPLATE ENGINE OWNER POLICY MEMORY AGE ENDS WAITS FOR TASK",
		"sb1 nightly held debian gvisor ci team 30 MB 1h - ap-x (python six 1) -",
		"sb2 r paused debian gvisor tok-2 sha256:0123456789ab - 0s - - -",
		"sb3 r running debian runc the host - - 0s - - -",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); strings.TrimRight(got, " -") != strings.TrimRight(want, " -") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAListNeedsNoUsage: a sandbox whose usage is not told, or not in time, is listed; one that was asked for too fast is asked again.
func TestAListNeedsNoUsage(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	var paced atomic.Int32
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sandboxes", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"sandboxes": []api.Sandbox{{ID: "sb-paced"}, {ID: "sb-silent"}, {ID: "sb-broken"}, {ID: "sb-gone"}}})
	})
	routes.HandleFunc("GET /v1/sandboxes/{id}/usage", func(w http.ResponseWriter, r *http.Request) {
		switch id := r.PathValue("id"); {
		case id == "sb-paced" && paced.Add(1) == 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case id == "sb-paced":
			answer(w, api.Usage{MemoryBytes: 7})
		case id == "sb-silent":
			<-r.Context().Done()
		case id == "sb-broken":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	server := &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	c := client.New(listener.Addr().String())

	all, err := listWithUsage(t.Context(), c, client.SandboxFilter{}, tooFast*3/2)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d sandboxes are listed: %v", len(all), err)
	}
	if all[0].Usage == nil || all[0].Usage.MemoryBytes != 7 {
		t.Errorf("what was asked for too fast is not known: %+v", all[0].Usage)
	}
	for _, b := range all[1:] {
		if b.ID == "" || b.Usage != nil {
			t.Errorf("%q uses %+v", b.ID, b.Usage)
		}
	}
	if _, err := usages(t.Context(), c, []api.Sandbox{{ID: "sb-broken"}}); client.StatusOf(err) != http.StatusInternalServerError {
		t.Errorf("who asks what a sandbox uses is not told why that is not known: %v", err)
	}
}
