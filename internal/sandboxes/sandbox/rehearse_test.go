package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// A rehearsal is like the sandbox that it is for, can write nothing of the host, and is
// gone when it ends.
func TestARehearsalIsLikeItsSandbox(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	work := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	s := d.create(t, sandbox.Request{Mounts: []mountpolicy.Mount{{Source: work, Destination: "/job", ReadWrite: true}}, Env: map[string]string{"A": "b"}, Workdir: "/job"})
	r, err := d.Rehearse(t.Context(), s.Info().ID)
	if err != nil {
		t.Fatal(err)
	}
	var twin sandbox.Info
	for _, other := range d.List() {
		if other.Info().Run == r.Run() {
			twin = other.Info()
		}
	}
	of := s.Info()
	if !twin.Plan || !twin.Rehearsal || of.Plan || of.Rehearsal || twin.ID == of.ID || twin.PolicyDigest != of.PolicyDigest || twin.Digest != of.Digest ||
		twin.Workdir != "/job" || twin.Owner.Token != of.Owner.Token || len(twin.WritableMounts) != 0 || !slices.Equal(twin.ReadOnlyMounts, of.WritableMounts) {
		t.Errorf("the rehearsal is %+v, of %+v", twin, of)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.wantOnly(t, of.ID)
	_, err = d.Rehearse(t.Context(), "sb-nobody")
	category(t, err, fault.ErrNotFound)
}
