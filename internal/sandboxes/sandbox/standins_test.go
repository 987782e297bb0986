package sandbox_test

import (
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestStandInsStandForTheirOwner: whatever makes a sandbox for another one makes it for the same host
// user, on whose behalf files of mounts are read: a rehearsal, a proof's twin, a workshop. Nobody
// named would be user 0.
func TestStandInsStandForTheirOwner(t *testing.T) {
	d := newWorld(t).daemon(t)
	var mu sync.Mutex // guards owners
	owners := map[string]engine.Owner{}
	d.engine.Before = func(s engine.Spec) {
		mu.Lock()
		defer mu.Unlock()
		owners[s.Labels["run"]] = s.Owner
	}
	s := d.create(t, sandbox.Request{Mounts: []mountpolicy.Mount{{Source: t.TempDir(), Destination: "/job"}}, HostUID: 65534, HostGID: 65533})
	id := s.Info().ID
	r, err := d.Rehearse(t.Context(), id)
	must(t, err)
	must(t, r.End(t.Context()))
	w, err := d.Workshop(t.Context(), id, someSource(), ask(t, sandbox.Request{}).Policy.Apart())
	must(t, err)
	must(t, w.End(t.Context()))
	if _, err := d.Prove(t.Context(), id); err != nil {
		t.Log("nothing is proved without an engine:", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(owners) != 4 {
		t.Fatalf("there were %v; want the sandbox and three that stand in for it", owners)
	}
	for run, of := range owners {
		if of.HostUID != 65534 || of.HostGID != 65533 {
			t.Errorf("%s stands for %+v on the host", run, of)
		}
	}
}
