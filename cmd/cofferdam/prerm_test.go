package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestARemovalEndsTheSandboxesOfTheMachine: the package's removal ends the machine's own sandboxes, after its service, whatever
// installation root's shell is set up for, and fails where that fails; an upgrade ends nothing.
func TestARemovalEndsTheSandboxesOfTheMachine(t *testing.T) {
	t.Parallel()
	const stopped = "cofferdam stop --force state= runtime= config= host=\n"
	for name, c := range map[string]struct {
		argument, root, code string
		said                 string
		fails                bool
	}{
		"a removal":             {argument: "remove", code: "0", said: stopped},
		"one that can't end":    {argument: "remove", code: "1", said: stopped, fails: true},
		"an upgrade":            {argument: "upgrade", code: "0"},
		"of another tree":       {argument: "remove", root: "/other", code: "0"},
		"what it stands in for": {argument: "deconfigure", code: "0"},
	} {
		bin := t.TempDir()
		calls := filepath.Join(bin, "calls")
		for program, text := range map[string]string{
			"systemctl": "",
			"cofferdam": `echo "cofferdam $* state=$COFFERDAM_STATE runtime=$COFFERDAM_RUNTIME config=$COFFERDAM_CONFIG host=$COFFERDAM_HOST" >>` + calls + "\nexit " + c.code + "\n",
		} {
			if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join("..", "..", "packaging", "debian", "prerm"), c.argument)
		cmd.Env = []string{
			"PATH=" + bin + ":" + os.Getenv("PATH"), "DPKG_ROOT=" + c.root,
			"COFFERDAM_STATE=/other", "COFFERDAM_RUNTIME=/other", "COFFERDAM_CONFIG=/other", "COFFERDAM_HOST=https://other",
		}
		out, err := cmd.CombinedOutput()
		said, _ := os.ReadFile(calls) // none: nothing was called
		if (err != nil) != c.fails || strings.TrimSpace(string(out)) != "" || string(said) != c.said {
			t.Errorf("%s: %v, %q; it called %q", name, err, out, said)
		}
	}
}
