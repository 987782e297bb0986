package daemon

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// fewRequests is a queue of a few requests whose events a test makes.
type fewRequests struct {
	mu     sync.Mutex // guards states
	states map[string]approval.State
	broken error
	events chan approval.Event
}

func (f *fewRequests) Get(_ context.Context, id string) (approval.Request, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, known := f.states[id]
	switch {
	case f.broken != nil:
		return approval.Request{}, f.broken
	case !known:
		return approval.Request{}, fault.New(fault.ErrNotFound, "there is no %s", id)
	}
	return approval.Request{ID: id, State: state}, nil
}

func (*fewRequests) LastEvent() uint64 { return 7 }

func (f *fewRequests) Watch(ctx context.Context, after uint64) iter.Seq2[approval.Event, error] {
	return func(yield func(approval.Event, error) bool) {
		for {
			select {
			case e := <-f.events:
				if e.Number > after && !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	f := &fewRequests{events: make(chan approval.Event), states: map[string]approval.State{
		"ap-1": approval.Pending, "ap-2": approval.Denied, "ap-3": approval.Pending,
	}}
	p := newPending(f, slog.New(slog.DiscardHandler))
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.followQueue(ctx)
	}()
	open, changed, err := p.Pending(ctx, []string{"ap-1", "ap-2", "ap-3", "ap-none"})
	if err != nil || !slices.Equal(open, []string{"ap-1", "ap-3"}) {
		t.Fatalf("%v, %v", open, err)
	}
	f.mu.Lock()
	f.states["ap-1"] = approval.Approved
	f.mu.Unlock()
	f.events <- approval.Event{Number: 8}
	<-changed
	if open, _, err := p.Pending(ctx, []string{"ap-1", "ap-3"}); err != nil || !slices.Equal(open, []string{"ap-3"}) {
		t.Fatalf("after an answer: %v, %v", open, err)
	}
	f.mu.Lock()
	f.broken = errors.New("no disk")
	f.mu.Unlock()
	if open, _, err := p.Pending(ctx, []string{"ap-3"}); err == nil {
		t.Errorf("a queue that fails says that %v are pending", open)
	}
	end()
	<-done
}
