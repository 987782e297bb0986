// Package coalesce runs what outlives the request that wanted it: tasks that end
// before the gateway does, and fetches that happen once however many want them.
package coalesce

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

var (
	errStopping = fault.New(fault.ErrUnavailable, "the gateway is stopping")
	errBug      = fault.Invalid("it meets a bug in the gateway, which the daemon's log tells of")
)

// Group has the tasks and fetches of one gateway. Make one with New; when it is
// to end, Cancel it, and Wait for it.
type Group struct {
	log    *slog.Logger
	life   context.Context //nolint:containedctx // the group's own lifetime, for fetches that outlive a client
	cancel context.CancelFunc
	tasks  tasks

	mu    sync.Mutex     // guards byKey
	byKey map[any]*fetch // by what is fetched, a value of a type that only its users have
}

// fetch is one that goes on. value and err are written before done is closed.
type fetch struct {
	party *fairqueue.Party // all who want it: what it takes is taken of their shares
	asked bool             // somebody wants it now, who is told what comes of it; guarded by Group.mu, for good once done is closed
	done  chan struct{}
	value any
	err   error
}

// New makes a group whose life begins now.
func New(log *slog.Logger) *Group {
	g := &Group{log: log, byKey: map[any]*fetch{}}
	g.life, g.cancel = context.WithCancel(context.Background())
	return g
}

// Cancel ends the group's life: what runs is told to stop.
func (g *Group) Cancel() { g.cancel() }

// Wait returns once all tasks have ended. None begins any more.
func (g *Group) Wait() { g.tasks.closeTasks() }

// Life ends with Cancel.
func (g *Group) Life() context.Context { return g.life }

// LifeFor is the group's life, for what goes on for those whom ctx is for when
// they have gone.
func (g *Group) LifeFor(ctx context.Context) context.Context {
	return fairqueue.With(g.life, fairqueue.Of(ctx))
}

// Begin counts a task that runs on the caller's goroutine until End; false: it is
// too late for any.
func (g *Group) Begin() bool { return g.tasks.beginTask() }

// End ends a task that Begin counted.
func (g *Group) End() { g.tasks.endTask() }

// Run starts a task on a goroutine of its own; false: it is too late for any.
func (g *Group) Run(f func()) bool { return g.tasks.runTask(f) }

// Contain makes an error of a panic: what is read in flights is hostile, and a
// bug that it finds in a reader must cost no other run its gateway.
func (g *Group) Contain(ctx context.Context, at any, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("a bug in the gateway", "at", fmt.Sprint(at), "panic", p, "stack", string(debug.Stack()))
			err = errBug
		}
	}()
	return do(ctx)
}

// Once runs one fetch for all who want the same, for as long as the group lives;
// whoever gives up leaves it running. The fetch's own context is for all of them.
// Keys of different types are different, whatever they say.
func Once[K comparable, V any](ctx context.Context, g *Group, key K, do func(ctx context.Context) (V, error)) (V, error) {
	f, _ := startFlight(ctx, g, key, true, do)
	return awaitFlight[V](ctx, f)
}

// Ahead is Once for what nobody wants yet. untold are the guests for whom it was done if nobody has wanted it
// meanwhile, and if this call began it: nobody else is told then what came of it.
func Ahead[K comparable, V any](ctx context.Context, g *Group, key K, do func(ctx context.Context) (V, error)) (value V, untold []string, err error) {
	f, begun := startFlight(ctx, g, key, false, do)
	value, err = awaitFlight[V](ctx, f)
	g.mu.Lock()
	defer g.mu.Unlock()
	if begun && !f.asked && ctx.Err() == nil {
		untold = slices.DeleteFunc(f.party.Guests(), func(guest string) bool { return guest == "" })
	}
	return value, untold, err
}

// startFlight joins the fetch that goes on, or begins one.
func startFlight[K comparable, V any](ctx context.Context, g *Group, key K, asked bool, do func(ctx context.Context) (V, error)) (f *fetch, begin bool) {
	f, begin = g.joinFlight(ctx, key, asked)
	if begin && !g.tasks.runTask(func() {
		var value V
		err := g.Contain(fairqueue.With(g.life, f.party), key, func(ctx context.Context) (err error) {
			value, err = do(ctx)
			return err
		})
		g.landFlight(key, f, value, err)
	}) {
		g.landFlight(key, f, nil, errStopping)
	}
	return f, begin
}

// awaitFlight gives what comes of a fetch.
func awaitFlight[V any](ctx context.Context, f *fetch) (V, error) {
	var none V
	select {
	case <-f.done:
		if f.err != nil {
			return none, f.err
		}
		v, _ := f.value.(V) // only a nil interface is none
		return v, nil
	case <-ctx.Done():
		return none, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the client gave up")
	}
}

// joinFlight gives the fetch that goes on, or a new one that the caller begins.
func (g *Group) joinFlight(ctx context.Context, key any, asked bool) (f *fetch, begin bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f = g.byKey[key]
	if f == nil {
		f, begin = &fetch{party: &fairqueue.Party{}, done: make(chan struct{})}, true
		g.byKey[key] = f
	}
	f.asked = f.asked || asked
	f.party.Join(ctx)
	return f, begin
}

func (g *Group) landFlight(key any, f *fetch, value any, err error) {
	g.mu.Lock()
	delete(g.byKey, key)
	g.mu.Unlock()
	f.value, f.err = value, err
	close(f.done)
}

// tasks are goroutines that close waits for. After it none begins.
type tasks struct {
	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

func (t *tasks) beginTask() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.group.Add(1)
	return true
}

func (t *tasks) endTask() { t.group.Done() }

func (t *tasks) runTask(f func()) bool {
	if !t.beginTask() {
		return false
	}
	safego.Go(func() {
		defer t.endTask()
		f()
	})
	return true
}

func (t *tasks) closeTasks() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.group.Wait()
}
