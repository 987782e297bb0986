package e2b_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// TestConnectWithoutMemory: what was paused with its memory is started anew on its
// files by who asks for that, and one that runs is left alone.
func TestConnectWithoutMemory(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	start := func() (running func() bool) {
		t.Helper()
		k, err := h.life.Start(t.Context(), id, sandbox.Command{Argv: []string{"/bin/cat"}, Stdin: true})
		if err != nil {
			t.Fatal(err)
		}
		return func() bool {
			all, err := h.life.Commands(t.Context(), id)
			at := slices.IndexFunc(all, func(c keeper.Command) bool { return c.ID == k.ID })
			return err == nil && at >= 0 && all[at].Exit == nil
		}
	}
	var got made
	for path, body := range map[string]string{"/v2/sandboxes/%s/connect": `{"memory":false,"timeout":60}`, "/sandboxes/%s/resume": `{"memory":false,"timeout":60}`} {
		running := start()
		h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
		h.must(201, &got, h.ann, "POST "+fmt.Sprintf(path, id), body)
		for running() { // until its end is told
			if t.Context().Err() != nil {
				t.Fatal("what ran before goes on")
			}
		}
		if h.livesFor(id) != time.Minute || h.info(id).State != "running" {
			t.Errorf("it lives for %v", h.livesFor(id))
		}
	}
	running := start()
	h.must(200, &got, h.ann, "POST /v2/sandboxes/"+id+"/connect", `{"memory":false}`)
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
	h.must(201, &got, h.ann, "POST /v2/sandboxes/"+id+"/connect", `{"memory":true}`)
	if !running() {
		t.Error("what runs was ended, and nobody asked for that")
	}
}

// TestPauseOfTheHealthy: who asks for that has a sandbox paused only if its agent
// answers.
func TestPauseOfTheHealthy(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	box, err := h.life.Box(id)
	if err != nil {
		t.Fatal(err)
	}
	root := box.Files.Root
	box.Files.Root = root + "-gone"
	h.refused(503, "does not answer", h.ann, "POST /sandboxes/"+id+"/pause", `{"requireHealthyGuest":true}`)
	if state := h.info(id).State; state != "running" {
		t.Error(state)
	}
	box.Files.Root = root
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", `{"requireHealthyGuest":true}`)
	h.refused(409, "paused already", h.ann, "POST /sandboxes/"+id+"/pause", `{"requireHealthyGuest":true}`)
}

// TestConnectWhileASilentAgentIsPaused: a connect that comes before the pause has ended hears what one hears that
// comes behind it.
func TestConnectWhileASilentAgentIsPaused(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	asked, over := make(chan struct{}), make(chan struct{})
	list := new(backendtest.People).Telling(t.Context(), id, t.TempDir(), func(context.Context, bool) error {
		close(asked)
		<-over
		return fault.New(fault.ErrUnavailable, "the agent did not answer")
	})
	if err := h.life.WaitsIn(id, list); err != nil {
		t.Fatal(err)
	}
	paused := make(chan error, 1)
	go func() { paused <- list.Pause(t.Context()) }()
	<-asked
	gone, leave := context.WithCancel(t.Context())
	leave() // so that it need not be waited for
	r, w := httptest.NewRequestWithContext(gone, http.MethodPost, "/v2/sandboxes/"+id+"/connect", nil), httptest.NewRecorder()
	r.Header.Set("X-Api-Key", h.ann)
	if h.control.ServeHTTP(w, r); w.Code < http.StatusBadRequest {
		t.Errorf("before the pause has ended: %d %s", w.Code, w.Body)
	}
	close(over)
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
	h.refused(409, "did not answer when it was paused", h.ann, "POST /v2/sandboxes/"+id+"/connect", "")
	list.Close()
}

// TestPausedWithASilentAgent: lists and infos tell of it, nothing but a start on the
// files brings the sandbox back, and then nothing is told any more.
func TestPausedWithASilentAgent(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	told := func(want bool) {
		t.Helper()
		for _, route := range []string{"/sandboxes/" + id, "/v2/sandboxes?state=running,paused"} {
			body := h.ask(h.ann, "GET "+route, "").Body.String()
			if got := strings.Contains(body, `"envdUnresponsiveAtPause":true`); got != want || strings.Contains(body, "envdUnresponsiveAtPause") != want {
				t.Errorf("GET %s: %s", route, body)
			}
		}
	}
	box, err := h.life.Box(id)
	if err != nil {
		t.Fatal(err)
	}
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
	told(false)
	box.WasSilent(true)
	told(true)
	for _, path := range []string{"/v2/sandboxes/%s/connect", "/sandboxes/%s/connect", "/sandboxes/%s/resume"} {
		for _, body := range []string{"", `{"memory":true}`} {
			w := h.ask(h.ann, "POST "+fmt.Sprintf(path, id), body)
			if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `"error_code":"sandbox_snapshot_guest_agent_unresponsive"`) || !strings.Contains(w.Body.String(), "memory: false") {
				t.Errorf("%s with %s: %d %s", path, body, w.Code, w.Body)
			}
		}
	}
	if state := h.info(id).State; state != "paused" {
		t.Error(state)
	}
	var back made
	h.must(201, &back, h.ann, "POST /v2/sandboxes/"+id+"/connect", `{"memory":false}`)
	told(false)
}
