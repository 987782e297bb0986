package sandbox_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
)

// TestAFullHostMakesNoMore: of many creates at one time so many come through as the host may be
// promised, whoever asks; the others are told what there is too little of. A sandbox that is
// paused makes room, and goes on only where there is some; what failed keeps nothing.
func TestAFullHostMakesNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Host = quota.Host{MemoryBytes: 7 << 30} // one has 2 GiB
	d := w.daemon(t)
	d.engine.Fails = func() error { return errors.New("no more") }
	for range 5 {
		if _, err := d.Create(t.Context(), ask(t, sandbox.Request{})); errors.Is(err, fault.ErrExhausted) {
			t.Error("what failed keeps its share")
		}
	}
	d.engine.Fails = nil
	if err := d.Room(); err != nil {
		t.Errorf("there is room: %v", err)
	}
	made := make(chan *sandbox.Sandbox, 20)
	var group sync.WaitGroup
	var refused atomic.Int64
	for i := range 20 {
		group.Go(func() {
			owner := sandbox.Owner{Token: []string{"", "tok-1", "tok-2"}[i%3]}
			s, err := d.Create(t.Context(), ask(t, sandbox.Request{Owner: owner}))
			if err == nil {
				made <- s
				return
			}
			category(t, err, fault.ErrExhausted, "this host is full", "overcommit.memory")
			refused.Add(1)
		})
	}
	group.Wait()
	if len(made) != 3 || refused.Load() != 17 {
		t.Fatalf("%d were made", len(made))
	}
	category(t, d.Room(), fault.ErrExhausted, "overcommit.memory allows 7168 MiB")
	if l := d.Load(); l.MemoryBytes != 6<<30 || l.CPU != 6 || l.Waiting["create"] != 0 {
		t.Errorf("%+v", l)
	}
	one := <-made
	if err := d.Pause(t.Context(), one.Info().ID); err != nil {
		t.Fatal(err)
	}
	if err := d.Room(); err != nil {
		t.Errorf("one is paused: %v", err)
	}
	d.create(t, sandbox.Request{})
	_, err := d.Resume(t.Context(), one.Info().ID)
	category(t, err, fault.ErrExhausted, "this host is full")
	wantState(t, one, sandbox.Paused)
	if err := d.Destroy(t.Context(), (<-made).Info().ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), one.Info().ID); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
