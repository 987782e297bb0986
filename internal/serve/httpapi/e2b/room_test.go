package e2b_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestLogsTakeRoom: however many requests of a token ask for the log of a sandbox that has written
// much, the daemon has no more in memory for them than a token may, and all are answered.
func TestLogsTakeRoom(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	if _, err := h.life.Start(t.Context(), id, sandbox.Command{Argv: []string{"/bin/sh", "-c", "head -c 16000000 /dev/zero | tr '\\0' x"}}); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; {
		commands, err := h.life.Commands(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		ended = commands[0].Exit != nil
	}
	before := inUse()
	var peak atomic.Int64
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				peak.Store(max(peak.Load(), inUse()-before))
			}
		}
	}()
	var all sync.WaitGroup
	for _, route := range []string{"/v2/sandboxes/", "/sandboxes/"} {
		for _, query := range []string{"", "?limit=0", "?limit=1", "?direction=backward", "?search=nothing"} {
			for range 4 {
				all.Go(func() {
					if w := h.ask(h.ann, "GET "+route+id+"/logs"+query, ""); w.Code != 200 {
						t.Errorf("%s%s: %d %.200s", route, query, w.Code, w.Body)
					} else if w.Body.Len() > 16<<20 {
						t.Errorf("%s%s: an answer of %d bytes", route, query, w.Body.Len())
					}
				})
			}
		}
	}
	all.Wait()
	close(stop)
	<-watched
	// The answers stay in this process, which is their client.
	if grown := peak.Load() >> 20; grown > 120 {
		t.Errorf("forty requests of one token took %d MiB", grown)
	}
}

// inUse is what this process has in memory, of its heap.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
