package sandbox

import (
	"encoding/json"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/pool"
)

// named is an engine that is only asked for its name.
type named struct{ engine.Engine }

func (named) Name() string { return "named" }

// TestAMemberIsForAnybody: the pool is filled for nobody, and what is ready is given to
// whoever asks for the like.
func TestAMemberIsForAnybody(t *testing.T) {
	spec := engine.Spec{ID: "sb1", Hostname: "sb1", Labels: map[string]string{"run": "r"}, Share: "tok-1"}
	asked, err := (&creationPlan{engine: named{}, spec: spec}).poolClass()
	if err != nil {
		t.Fatal(err)
	}
	made, err := (&creationPlan{engine: named{}, spec: engine.Spec{ID: "sb2", Hostname: "sb2"}}).poolClass()
	if err != nil {
		t.Fatal(err)
	}
	if asked != made {
		t.Errorf("a token asks for %s, and the pool makes %s", asked, made)
	}
	spec.Limits.CPU = 2
	if larger, err := (&creationPlan{engine: named{}, spec: spec}).poolClass(); err != nil || larger == made {
		t.Errorf("another size is the same class: %v", err)
	}
}

// TestRoomForAMember: what a member needs is free beside the reserve, and one with a kernel
// that waits needs more.
func TestRoomForAMember(t *testing.T) {
	plain, err := (&creationPlan{engine: named{}}).poolClass()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(instanceKind{Engine: "named", Warm: map[string]string{"HOME": "/home/agent"}})
	if err != nil {
		t.Fatal(err)
	}
	warm := pool.Class(data)
	for _, c := range []struct {
		class     pool.Class
		available int64
		fits      bool
	}{
		{plain, memoryReserve + memberMemory, true},
		{plain, memoryReserve + memberMemory - 1, false},
		{warm, memoryReserve + warmMemory, true},
		{warm, memoryReserve + warmMemory - 1, false},
	} {
		if err := roomFor(c.class, c.available); (err == nil) != c.fits {
			t.Errorf("%s with %d bytes: %v, want a place %t", c.class, c.available, err, c.fits)
		}
	}
}
