package sandbox_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// haste is who hurries, as an engine is told.
type haste struct {
	mu     sync.Mutex
	shares []string // in the order in which they began
	now    int      // that hurry
}

// Tend is all that the engines of tests have to look after.
func (e *plainEngine) Tend(ctx context.Context) { <-ctx.Done() }

// Hurry notes who does.
func (e *plainEngine) Hurry(share string) (done func()) {
	h := &e.haste
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shares, h.now = append(h.shares, share), h.now+1
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now--
	}
}

// TestACreateHurries: a sandbox is made while its owner's share hurries, and nobody
// hurries afterwards.
func TestACreateHurries(t *testing.T) {
	d := newWorld(t).daemon(t)
	atCreate := -1
	d.engine.Before = func(engine.Spec) {
		d.engine.haste.mu.Lock()
		defer d.engine.haste.mu.Unlock()
		atCreate = d.engine.haste.now
	}
	d.create(t, sandbox.Request{Owner: sandbox.Owner{Token: "somebody"}})
	h := &d.engine.haste
	h.mu.Lock()
	defer h.mu.Unlock()
	if atCreate != 1 || !slices.Equal(h.shares, []string{"somebody"}) || h.now != 0 {
		t.Errorf("%d hurried while it was made, by %v; %d hurry still", atCreate, h.shares, h.now)
	}
}
