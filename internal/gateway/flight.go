package gateway

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/turns"
)

// flights are the fetches that go on, by what is fetched.
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flying
}

// flying is one fetch. value and err are written before done is closed.
type flying struct {
	party *turns.Party // all who want it: what it takes is taken of their shares
	done  chan struct{}
	value any
	err   error
}

// join gives the fetch that goes on, or a new one that the caller begins.
func (fs *flights) join(ctx context.Context, key string) (f *flying, begin bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.byKey[key]
	if f == nil {
		f, begin = &flying{party: &turns.Party{}, done: make(chan struct{})}, true
		fs.byKey[key] = f
	}
	f.party.Join(ctx)
	return f, begin
}

func (fs *flights) end(key string, f *flying, value any, err error) {
	fs.mu.Lock()
	delete(fs.byKey, key)
	fs.mu.Unlock()
	f.value, f.err = value, err
	close(f.done)
}

// lifeFor is the gateway's life, for what goes on for those whom ctx is for when
// they have gone.
func (g *Gateway) lifeFor(ctx context.Context) context.Context {
	return turns.With(g.life, turns.Of(ctx))
}

// flight runs one fetch for all who want the same, for as long as the gateway
// lives; whoever gives up leaves it running. The fetch's own context is for all
// of them.
func flight[V any](ctx context.Context, g *Gateway, key string, fetch func(ctx context.Context) (V, error)) (V, error) {
	var none V
	f, begin := g.flights.join(ctx, key)
	if begin && !g.tasks.run(func() {
		value, err := contained(turns.With(g.life, f.party), g, key, func(ctx context.Context) (any, error) { return fetch(ctx) })
		g.flights.end(key, f, value, err)
	}) {
		g.flights.end(key, f, nil, fault.New(fault.ErrUnavailable, "the gateway is stopping"))
	}
	select {
	case <-f.done:
		v, _ := f.value.(V) // with an error there is no value
		return v, f.err
	case <-ctx.Done():
		return none, fault.Wrap(fault.ErrUnavailable, ctx.Err(), "the client gave up")
	}
}
