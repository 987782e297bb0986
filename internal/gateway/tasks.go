package gateway

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// tasks are goroutines that Close waits for. After close none begins.
type tasks struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// begin counts a task that runs on the caller's goroutine; false: too late.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Add(1)
	return true
}

func (t *tasks) end() { t.group.Done() }

// run starts a task on a goroutine of its own.
func (t *tasks) run(f func()) bool {
	if !t.begin() {
		return false
	}
	errand.Go(func() {
		defer t.end()
		f()
	})
	return true
}

func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.group.Wait()
}

// contained makes an error of a panic: what is read in flights is hostile, and a
// bug that it finds in a reader must cost no other run its gateway.
func contained(ctx context.Context, g *Gateway, key string, fetch func(context.Context) (any, error)) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a bug in the gateway", "at", key, "panic", p, "stack", string(debug.Stack()))
			err = errBug
		}
	}()
	return fetch(ctx)
}

var errBug = fault.Invalid("it meets a bug in the gateway, which the daemon's log tells of")
