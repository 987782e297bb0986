package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// TestAppliedThroughOtherSettingsOfThePerson: what the person's own programs start by themselves, because settings of
// theirs elsewhere name it. The controls are settings that are read: the agent claude's, and git's own file.
func TestAppliedThroughOtherSettingsOfThePerson(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"COFFERDAM_STATE": t.TempDir(), "HOME": home, "XDG_CONFIG_HOME": "", "GIT_CONFIG_GLOBAL": ""} {
		t.Setenv(name, value)
	}
	original, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := func(name string) string {
		return `{"mcpServers": {"mine": {"command": "node", "args": ["` + filepath.Join(original, name) + `"]}}}`
	}
	led := map[string]string{ // by a path in the project, whose settings name it
		"build/control.js":   ".claude.json",
		"build/cursor.js":    ".cursor/mcp.json",
		"build/desktop.js":   ".config/Claude/claude_desktop_config.json",
		"build/code.js":      ".config/Code/User/mcp.json",
		"build/windsurf.js":  ".codeium/windsurf/mcp_config.json",
		"build/zed.js":       ".config/zed/settings.json",
		"build/goose.js":     ".config/goose/config.yaml",
		"build/cline.js":     ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
		"build/hook.js":      ".claude/settings.local.json",
		"shell/aliases":      ".bash_aliases",
		"shell/fish":         ".config/fish/config.fish",
		"tools/git/pre-push": ".gitconfig-work", // included by .gitconfig
	}
	texts, settings := map[string]string{}, map[string]string{}
	for name, at := range led {
		texts[name] = "#\n"
		settings[at] = server(name)
	}
	settings[".gitconfig"] = "[include]\n\tpath = ~/.gitconfig-work\n"
	settings[".gitconfig-work"] = "[core]\n\thooksPath = tools/git\n"
	settings[".bash_aliases"], settings[".config/fish/config.fish"] = ". "+original+"/shell/aliases\n", "source "+original+"/shell/fish\n"
	laidFiles(t, original, 0o755, texts)
	laidFiles(t, home, 0o644, settings)
	if err := gitIn(t, original, "init", "-q"); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Make(t.Context(), original, filepath.Join(t.TempDir(), "w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	for name := range texts {
		texts[name] = "#!/bin/sh\ntouch " + ran + "\n"
	}
	texts["tools/git/post-commit"] = "#!/bin/sh\ntouch " + ran + "\n"
	laidFiles(t, w.Dir(), 0o755, texts)
	changes, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := autorunOf(t.Context(), w, changes)
	if err != nil {
		t.Fatal(err)
	}
	rest := leaveUnnamed(w, files, changes, nil)
	for _, c := range rest {
		switch why := led[c.Path]; {
		case c.Path == "build/control.js":
			t.Fatal("INCONCLUSIVE: the control is brought over unnamed")
		case why != "":
			t.Errorf("%s is brought over unnamed, and the person's %s starts it", c.Path, why)
		}
	}
	if _, errs := w.Apply(t.Context(), slices.Clone(rest), false); len(errs) > 0 {
		t.Fatal(errs)
	}
	commit := exec.CommandContext(t.Context(), "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-q", "-m", "x")
	commit.Dir, commit.Env = original, append(os.Environ(), "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL="+filepath.Join(home, ".gitconfig"))
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("INCONCLUSIVE: %v: %s", err, out)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("git ran, at a commit, what came from the copy unnamed")
	}
}
