package sandbox_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// clings makes a daemon whose sandboxes can't be taken away until let go, and counts
// the tries.
func clings(t *testing.T) (d *daemon, tries *atomic.Int32, release func()) {
	t.Helper()
	w := newWorld(t)
	w.EndRetry = time.Millisecond
	d = w.daemon(t)
	var free atomic.Bool
	tries = &atomic.Int32{}
	d.engine.Stays = func() error {
		tries.Add(1)
		if free.Load() {
			return nil
		}
		return errors.New("it is busy")
	}
	release = func() { free.Store(true) }
	t.Cleanup(release) // before the daemon's end
	return d, tries, release
}

// TestWhatCanNotBeTakenAwayIsTriedAgain without anybody's asking, tells that it is
// stuck, and has its share of the quota until it is gone.
func TestWhatCanNotBeTakenAwayIsTriedAgain(t *testing.T) {
	t.Parallel()
	d, tries, release := clings(t)
	req := ask(t, sandbox.Request{Owner: sandbox.Owner{Token: "tok-1", Quota: token.Quota{Sandboxes: 1}}})
	s := d.create(t, req)
	if got := s.Stuck(); got != (sandbox.Stuck{}) {
		t.Errorf("one that runs is stuck: %+v", got)
	}
	before := time.Now()
	category(t, d.Destroy(t.Context(), s.Info().ID), fault.ErrUnavailable, "can't be taken away")
	wantState(t, s, sandbox.Destroying)
	await(t, "it is tried again", func() bool { return tries.Load() >= 3 && s.Stuck().Tries >= 3 })
	if got := s.Stuck(); got.Since.Before(before) || !got.Next.After(got.Since) {
		t.Errorf("it tells %+v", got)
	}
	_, err := d.Create(t.Context(), req)
	category(t, err, fault.ErrExhausted, "quota")
	release()
	gone(t, s)
	d.nothingLeft(t)
	d.wantOneEnd(t)
	d.wantEvents(t, s.Info().ID, sandbox.Creating, sandbox.Running, sandbox.Destroying, sandbox.Destroyed)
	d.create(t, req)
}

// TestEverybodyHearsThatATryFailed: who asks while somebody else tries is not left
// waiting.
func TestEverybodyHearsThatATryFailed(t *testing.T) {
	t.Parallel()
	d, _, release := clings(t)
	s := d.create(t, sandbox.Request{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			category(t, d.Destroy(t.Context(), s.Info().ID), fault.ErrUnavailable, "can't be taken away")
		})
	}
	all.Wait()
	release()
	gone(t, s)
	d.nothingLeft(t)
}

// TestWhatFailedIsTakenAwayInTheEnd, for the reason for which it ended.
func TestWhatFailedIsTakenAwayInTheEnd(t *testing.T) {
	t.Parallel()
	d, tries, release := clings(t)
	s := d.create(t, sandbox.Request{})
	if err := d.world.keeper().Kill(t.Context(), s.Info().ID); err != nil {
		t.Fatal(err)
	}
	await(t, "it is tried again", func() bool { return tries.Load() >= 3 })
	release()
	gone(t, s)
	d.nothingLeft(t)
	d.wantOneEnd(t)
	for r, err := range d.log.Records(t.Context(), audit.Filter{Sandbox: s.Info().ID, Kinds: []audit.Kind{audit.KindSandbox}}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome == audit.Finished && r.Reason == "destroyed" {
			t.Errorf("its end is on record as asked for: %+v", r)
		}
	}
}
