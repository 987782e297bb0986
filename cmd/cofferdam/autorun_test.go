package main

import (
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/preset"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// TestAgentsFilesAreKnownToStartThings: what a client of MCP or an agent that is known here
// reads in a project, and what decides our own next run, is brought over only by name.
func TestAgentsFilesAreKnownToStartThings(t *testing.T) {
	t.Parallel()
	files := autorun.Know(slices.Values([]string(nil)))
	names := []string{project.File, mountpolicy.IgnoreFile}
	instructions := map[string][]string{ // that each agent reads in the directory that it works in
		"amp": {"AGENTS.md", "AGENT.md"}, "claude": {"CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"}, "codex": {"AGENTS.md", "AGENTS.override.md"}, "copilot": {".github/copilot-instructions.md", ".github/instructions/x.instructions.md"},
		"gemini": {"GEMINI.md"}, "opencode": {"AGENTS.md"}, "qwen": {"QWEN.md"},
	}
	obeys := func(agent string) {
		if len(instructions[agent]) == 0 {
			t.Errorf("the test has no file of instructions of %s", agent)
		}
		names = append(names, instructions[agent]...)
	}
	for _, c := range mcpClients() {
		obeys(c.name)
		names = append(names, c.project, filepath.Base(c.user("/home")))
	}
	shipped, err := preset.Read()
	if err != nil {
		t.Fatal(err)
	}
	for name, agent := range shipped.Agents {
		obeys(name)
		names = append(names, "."+name+"/x")
		for _, state := range agent.State {
			if path.Dir(state) == "." {
				names = append(names, state)
			}
		}
	}
	if len(names) < 15 {
		t.Errorf("only %d names: the test looks for the wrong ones", len(names))
	}
	for _, name := range names {
		if name == "settings.json" || name == "config.toml" || name == "mcp-config.json" {
			continue // of the user's own directory, where its directory has the name
		}
		if !files.Level(name).ByName() {
			t.Errorf("%s is brought over without being named", name)
		}
	}
}
