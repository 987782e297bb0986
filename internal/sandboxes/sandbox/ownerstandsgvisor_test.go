package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestRealStandInsReadAsTheirOwner: a rehearsal, the twin of a proof and a workshop stand for the host
// user of the sandbox that they are made for, and not for root: what that one can't read of a mount they
// can't either. The control is a file that it can read.
func TestRealStandInsReadAsTheirOwner(t *testing.T) {
	s := newRealStudio(t)
	shown := t.TempDir()
	must(t, os.Chmod(shown, 0o755))
	must(t, os.WriteFile(filepath.Join(shown, "key"), []byte("root's alone"), 0o600))
	must(t, os.WriteFile(filepath.Join(shown, "open"), []byte("for all"), 0o644))
	req := s.request(open)
	req.HostUID, req.HostGID = 65534, 65534 // as for every token
	req.Mounts = []mountpolicy.Mount{{Source: shown, Destination: "/shown"}}
	id := s.create(req).Info().ID
	const look = "cat /shown/open /shown/key 2>&1; true"
	if got := s.sh(id, look); !strings.HasPrefix(got, "for all") || strings.Contains(got, "root's alone") {
		t.Fatalf("the sandbox itself reads %q", got)
	}
	r, err := s.Rehearse(t.Context(), id)
	must(t, err)
	defer func() { must(t, r.End(t.Context())) }()
	got, err := r.Output(t.Context(), sandbox.Command{Argv: []string{"/bin/sh", "-c", look}, CapBytes: 1 << 20})
	if err != nil || !strings.HasPrefix(string(got), "for all") || strings.Contains(string(got), "root's alone") {
		t.Errorf("its rehearsal reads %q, %v", got, err)
	}
}
