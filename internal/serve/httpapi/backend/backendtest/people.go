package backendtest

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// People are who answer what boxes wait for. Safe for concurrent use.
type People struct {
	mu      sync.Mutex // guards what follows
	pending []string
	changed chan struct{}
}

// Pending implements suspend.Queue.
func (p *People) Pending(_ context.Context, ids []string) (pending []string, changed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	for _, id := range ids {
		if slices.Contains(p.pending, id) {
			pending = append(pending, id)
		}
	}
	return pending, p.changed, nil
}

// Ask files a request, and Answer answers all.
func (p *People) Ask(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = append(p.pending, id)
}

// Answer answers every request.
func (p *People) Answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = nil
	if p.changed != nil {
		close(p.changed)
	}
	p.changed = make(chan struct{})
}

// stopped is a body for which to be frozen means nothing.
type stopped struct{}

func (stopped) Freeze(context.Context, string) error      { return nil }
func (stopped) FreezeFiles(context.Context, string) error { return nil }
func (stopped) Thaw(context.Context, string) error        { return nil }

// Sleeper is a body that comes back from disk only once Wakes is closed.
type Sleeper struct {
	stopped
	Wakes chan struct{}
}

// Thaw implements suspend.Body.
func (s Sleeper) Thaw(ctx context.Context, _ string) error {
	select {
	case <-s.Wakes:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Waits is the list of holds of a box that is frozen as soon as a hold asks for it.
func (p *People) Waits(ctx context.Context, id, dir string) *suspend.List {
	return p.WaitsOf(ctx, id, dir, stopped{}, func(context.Context, bool) error { return nil })
}

// WaitsOf is Waits with a body of its own, and clocks is how the box's guest is told of its clocks.
func (p *People) WaitsOf(ctx context.Context, id, dir string, body suspend.Body, clocks func(ctx context.Context, stopped bool) error) *suspend.List {
	return suspend.New(ctx, suspend.Config{
		Sandbox: id, Body: body, Queue: p, Shelf: suspend.NewShelf(dir, suspend.Room{Bytes: 1 << 30, Count: 10}),
		Clocks: clocks, Woken: func(context.Context) error { return nil },
		Remember: func(context.Context, *suspend.Saved) error { return nil }, Record: func(context.Context, suspend.Change) {},
		Lost: func(string) {}, Log: slog.New(slog.DiscardHandler),
	})
}

// Hold is a request for a package that waits.
func Hold(approval string, freeze bool) suspend.Hold {
	return suspend.Hold{Approval: approval, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo", Version: "1.0"}, Freeze: freeze}
}

// Telling is Waits with how the box's guest is told of its clocks.
func (p *People) Telling(ctx context.Context, id, dir string, clocks func(ctx context.Context, stopped bool) error) *suspend.List {
	return p.WaitsOf(ctx, id, dir, stopped{}, clocks)
}
