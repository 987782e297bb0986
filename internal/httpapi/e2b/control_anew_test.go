package e2b_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
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
