package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestFreshTheEnginesProgramIsNoGuests: the package of Python brings the program and the engine's
// into a project's virtual environment. A run that may write to the project puts a program of its
// own there, and the host must not run it. The control: the second run is made by the same programs, and ends well.
func TestFreshTheEnginesProgramIsNoGuests(t *testing.T) {
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip("makes sandboxes as root")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, ran := filepath.Join(top, "project", ".venv", "bin"), filepath.Join(top, "ran")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cofferdam", "runsc"} {
		if out, err := exec.CommandContext(t.Context(), "cp", filepath.Join("..", "..", "bin", name), bin).CombinedOutput(); err != nil {
			t.Skipf("needs make build: %s", out)
		}
	}
	cofferdam := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "cofferdam"), args...)
		cmd.Dir = filepath.Join(top, "project")
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+filepath.Join(top, "state"), "COFFERDAM_RUNTIME="+filepath.Join(top, "run"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = cofferdam("stop", "--force") })
	out, err := cofferdam("run", "--template", "host", "--mount", ".:/workspace:rw", "--", "sh", "-c",
		`cd .venv/bin && mv runsc runsc.was && printf '#!/bin/sh\nid > `+ran+`\nexec "${0%%/*}/runsc.was" "$@"\n' > runsc && chmod 755 runsc`)
	if err != nil {
		t.Logf("the run was refused or failed: %v: %s", err, out) // as it should
	}
	out, err = cofferdam("run", "--template", "host", "--", "true")
	if id, is := os.ReadFile(ran); is == nil {
		t.Errorf("the host ran the guest's program: %s (the run: %v, %s)", id, err, out)
	} else if err != nil {
		t.Errorf("the control: %v: %s", err, out)
	}
}
