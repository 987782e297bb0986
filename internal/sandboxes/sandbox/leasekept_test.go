package sandbox_test

import (
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestALeaseIsKept whatever is done with a sandbox that has one, however it was made; and nobody
// has one that was not asked for. It is dropped by who says so alone.
func TestALeaseIsKept(t *testing.T) {
	const lease = 10 * time.Minute
	d := newStudio(t)
	create := func(l sandbox.Lifetime) *sandbox.Sandbox {
		t.Helper()
		req := d.request(house)
		req.Lifetime = l
		return d.create(req)
	}
	fork := func(l, asked sandbox.Lifetime) *sandbox.Sandbox {
		t.Helper()
		copies, err := d.Fork(t.Context(), create(l).Info().ID, 1, asked)
		must(t, err)
		must(t, copies[0].Err)
		return copies[0].Sandbox
	}
	makes := map[string]func(l sandbox.Lifetime) *sandbox.Sandbox{
		"create": create,
		"fork":   func(l sandbox.Lifetime) *sandbox.Sandbox { return fork(l, sandbox.Lifetime{TTL: time.Hour}) },
		"restore": func(l sandbox.Lifetime) *sandbox.Sandbox {
			t.Helper()
			kept, err := d.Snapshot(t.Context(), create(sandbox.Lifetime{}).Info().ID, "", "")
			must(t, err)
			req := d.request(house)
			req.Template, req.Engine, req.Mounts, req.Snapshot, req.Lifetime = "", "", nil, kept.ID, l
			return d.create(req)
		},
	}
	set := func(id string, l sandbox.Lifetime) { must(t, d.SetLifetime(t.Context(), id, l)) }
	changes := map[string]func(id string){
		"nothing": func(string) {},
		"extend":  func(id string) { set(id, sandbox.Lifetime{TTL: time.Hour}) },
		"extend twice": func(id string) {
			set(id, sandbox.Lifetime{Idle: time.Hour})
			set(id, sandbox.Lifetime{})
		},
		"pause and resume": func(id string) {
			must(t, d.Pause(t.Context(), id))
			_, err := d.Resume(t.Context(), id)
			must(t, err)
		},
	}
	for how, make := range makes {
		for what, change := range changes {
			for asked, want := range map[time.Duration]time.Duration{lease: lease, 0: 0} {
				s := make(sandbox.Lifetime{Lease: asked})
				change(s.Info().ID)
				if got := s.Lifetime().Lease; got != want {
					t.Errorf("%s, then %s: the lease is %s, not %s", how, what, got, want)
				}
				set(s.Info().ID, sandbox.Lifetime{Lease: sandbox.NoLease})
				if got := s.Lifetime().Lease; got != 0 {
					t.Errorf("%s, then %s, then none: the lease is %s", how, what, got)
				}
				must(t, d.Destroy(t.Context(), s.Info().ID))
			}
		}
	}
	for asked, want := range map[time.Duration]time.Duration{0: 5 * time.Minute, time.Hour: time.Hour, sandbox.NoLease: 0} {
		if got := fork(sandbox.Lifetime{Lease: 30 * time.Second}, sandbox.Lifetime{Lease: asked}).Lifetime().Lease; got != want {
			t.Errorf("a fork of one with half a minute that asks for %s has %s", asked, got)
		}
	}
	if got := create(sandbox.Lifetime{Lease: sandbox.NoLease}).Lifetime().Lease; got != 0 {
		t.Errorf("a new one without a lease has %s", got)
	}
	id := create(sandbox.Lifetime{Lease: lease}).Info().ID
	set(id, sandbox.Lifetime{TTL: time.Hour})
	d.restart("sha256:template")
	s, err := d.Get(id)
	must(t, err)
	if got := s.Lifetime().Lease; got != lease {
		t.Errorf("after a restart the lease is %s", got)
	}
}
