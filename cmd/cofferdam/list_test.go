package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestAListAnswersWhose: whose a sandbox is, under which policy, how old, how large and for what it waits, in one line, and
// what is not known has a mark of its own.
func TestAListAnswersWhose(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	boxes := []listedSandbox{
		{Sandbox: api.Sandbox{
			ID: "sb1", Run: "nightly", State: "running", Template: "debian", Engine: "gvisor", Policy: "sha256:0123456789abcdef", PolicyName: "team",
			Token: "tok-1", TokenName: "ci", Created: now.Add(-90 * time.Minute), Holds: []api.Hold{{Request: "ap-x", Package: "python six 1"}},
		}, Usage: &api.Usage{MemoryBytes: 30_000_000, MemoryLimit: 2 << 30}},
		{Sandbox: api.Sandbox{ID: "sb2", Run: "r", State: "paused", Template: "debian", Engine: "gvisor", Policy: "sha256:0123456789abcdef", Token: "tok-2", Created: now}},
		{Sandbox: api.Sandbox{ID: "sb3", Run: "r", State: "running", Template: "debian", Engine: "runc", Created: now}},
	}
	var text strings.Builder
	if err := writeSandboxes(&text, boxes, now); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	for i, want := range []string{
		"SANDBOX RUN STATE TEMPLATE ENGINE OWNER POLICY MEMORY AGE ENDS WAITS FOR TASK",
		"sb1 nightly held debian gvisor ci team 30 MB 1h - ap-x (python six 1) -",
		"sb2 r paused debian gvisor tok-2 sha256:0123456789ab - 0s - - -",
		"sb3 r running debian runc the host - - 0s - - -",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); strings.TrimRight(got, " -") != strings.TrimRight(want, " -") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
