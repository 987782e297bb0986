//go:build long

package fake_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
)

// TestTenThousandCreates: none is lost while the counter of process numbers comes
// around hundreds of times.
func TestTenThousandCreates(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	const creates, lanes, around = 10_000, 4, 25
	dir, err := os.MkdirTemp("", "fk") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	k := enginetest.StartKeeper(t, filepath.Join(dir, "keeper.sock"))
	e := fake.New(dir, k)
	init := enginetest.PlainInit(t, "")
	var made, again atomic.Int64
	var seen sync.Map
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			for n := made.Add(1); n <= creates && !t.Failed(); n = made.Add(1) {
				if n%around == 1 {
					if err := processtest.SetLast(5000); err != nil {
						t.Error(err)
					}
				}
				id := fmt.Sprintf("box-%d", n)
				root := filepath.Join(dir, "roots", id)
				inst, err := e.Create(t.Context(), engine.Spec{
					ID: id, Root: engine.Root{Kind: engine.RootDir, Path: "/"}, Init: append(init[:len(init)-1:len(init)-1], root),
				})
				if err != nil {
					t.Errorf("the create %d: %v", n, err)
					return
				}
				known, err := k.Get(t.Context(), id)
				if err != nil || !known.Alive || len(known.Pids) != 1 {
					t.Errorf("the create %d: %+v, %v", n, known, err)
					return
				}
				if _, was := seen.LoadOrStore(known.Pids[0], n); was {
					again.Add(1)
				}
				if _, err := k.Call(t.Context(), id, channel.Call{Kind: channel.CallPing}); err != nil {
					t.Errorf("the create %d: ping: %v", n, err)
				}
				if err := inst.Destroy(t.Context()); err != nil {
					t.Errorf("the create %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	if again.Load() < creates/2 {
		t.Errorf("only %d numbers came again", again.Load())
	}
}
