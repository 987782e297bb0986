package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// loose is an engine that does not keep to what it is asked for, once it is told.
type loose struct {
	engine.Engine
	broken bool
}

func (l *loose) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	if l.broken {
		spec.Limits.DiskBytes *= 4
		spec.Limits.MemoryBytes *= 4
		spec.Limits.CPU *= 4
		spec.Mounts = slices.Clone(spec.Mounts)
		for i := range spec.Mounts {
			if strings.HasPrefix(spec.Mounts[i].Destination, "/shown") {
				spec.Mounts[i].ReadOnly = false
			}
		}
	}
	return l.Engine.Create(ctx, spec)
}

// TestRealControlsAreProved: each control of a sandbox is tried in a twin, which leaves
// nothing; and those that the engine breaks are told as failed, and no others.
func TestRealControlsAreProved(t *testing.T) {
	eng := &loose{}
	s := newRealStudioOf(t, func(e engine.Engine) engine.Engine { eng.Engine = e; return eng })
	shown := t.TempDir()
	must(t, os.Chmod(shown, 0o777)) // who may write is not the question
	req := s.request(open)
	req.Mounts = []mountpolicy.Mount{{Source: shown, Destination: "/shown"}}
	id := s.create(req).Info().ID
	s.sh(id, "echo mine > /home/agent/mine")

	eng.broken = true
	report, err := s.Prove(t.Context(), id)
	must(t, err)
	if report.Twin == id || report.Sandbox != id || report.Tried.DiskBytes >= report.Limits.DiskBytes || len(report.Controls) < 15 {
		t.Errorf("the report is %+v", report)
	}
	for _, c := range report.Controls {
		want := attest.Proved
		if slices.Contains([]string{"disk limit", "read-only mounts", "memory limit", "CPU limit"}, c.Name) {
			want = attest.Failed
		}
		if c.Name == "CPU limit" && c.Outcome == attest.NotApplicable { // this machine is busy, or has one processor
			continue
		}
		if c.Outcome != want || c.Says == "" {
			t.Errorf("%s is %s: %s", c.Name, c.Outcome, c.Says)
		}
	}
	if _, err := s.Get(report.Twin); err == nil {
		t.Error("the twin is still there")
	}
	if left, err := filepath.Glob(filepath.Join(shown, ".*")); err != nil || len(left) > 0 {
		t.Errorf("the probe left %v on the host (%v)", left, err)
	}
	if got := s.sh(id, "cat /home/agent/mine"); got != "mine" {
		t.Errorf("the sandbox itself has %q", got)
	}
	if _, err := s.Prove(t.Context(), "sb-nobody"); err == nil {
		t.Error("nobody's controls were proved")
	}
}
