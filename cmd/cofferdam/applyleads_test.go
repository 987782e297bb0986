package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// laidFiles makes files, with the directories that they need.
func laidFiles(t *testing.T, dir string, mode os.FileMode, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(at)
		if err := os.WriteFile(at, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// gitIn runs git in a directory, without anybody's settings.
func gitIn(t *testing.T, dir string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	t.Logf("git %v: %v %s", args, err, out)
	return err
}

// TestAppliedThroughLinksAndSettings: files without a name that counts come to be run or obeyed
// since the person's links and settings lead to them. None of them is brought over unnamed. The
// oracle is git itself, which runs its hook in the person's directory if one of them was.
func TestAppliedThroughLinksAndSettings(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"COFFERDAM_STATE": t.TempDir(), "HOME": home, "XDG_CONFIG_HOME": "", "GIT_CONFIG_GLOBAL": ""} {
		t.Setenv(name, value)
	}
	original, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Join(original, "helpers")+":./local/programs")
	for _, args := range [][]string{{"init", "-q"}, {"config", "core.hooksPath", "tools/hooks"}, {"config", "core.fsmonitor", "tools/watch.sh"}, {"config", "include.path", "../tools/gitinclude"}} {
		if err := gitIn(t, original, args...); err != nil {
			t.Fatal(err)
		}
	}
	led := map[string]string{ // what leads there, by name
		"tools/hooks/pre-commit": "core.hooksPath", "tools/watch.sh": "core.fsmonitor", "tools/gitinclude": "include.path", "tools/filter": "the person's own git settings",
		"scripts/check.sh": "a link of .git/hooks", "docs/guide.md": "the link CLAUDE.md", "conf/servers.json": "the link .mcp.json", "conf/direnv": "the link .envrc", "conf/later": "a link that led to nothing",
		"lib/serve.py": ".mcp.json of sub", "lib/env.sh": "the direnv file", "helpers/ls": "the PATH", "local/programs/cat": "the PATH, from here", "dotfiles/bash": "a link of the home directory", "shell/aliases": "the shell's own file",
	}
	harmless := map[string]string{"src/main.go": "", "docs/other.md": "", "scripts/other.sh": "", "tools/other": ""}
	texts := map[string]string{}
	for name := range led {
		if name != "conf/later" {
			texts[name] = "#\n"
		}
	}
	laidFiles(t, original, 0o755, texts)
	laidFiles(t, original, 0o644, harmless)
	laidFiles(t, original, 0o644, map[string]string{"sub/.mcp.json": `{"mcpServers": {"a": {"command": "python3", "args": ["lib/serve.py"]}}}`, "more/.envrc": "source_env ../lib/env.sh\n"})
	laidFiles(t, home, 0o644, map[string]string{".gitconfig": "[filter \"x\"]\n\tclean = tools/filter\n", ".bashrc": ". " + original + "/shell/aliases\n"})
	for link, to := range map[string]string{
		filepath.Join(original, ".git/hooks/pre-push"): "../../scripts/check.sh", filepath.Join(original, "CLAUDE.md"): "docs/guide.md", filepath.Join(original, ".mcp.json"): "conf/servers.json",
		filepath.Join(original, ".envrc"): "conf/direnv", filepath.Join(original, ".npmrc"): "conf/later", filepath.Join(home, ".profile"): filepath.Join(original, "dotfiles/bash"),
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	w, err := workspace.Make(t.Context(), original, filepath.Join(t.TempDir(), "w"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	texts = map[string]string{"bin/tool": ""}
	for name := range led {
		texts[name] = "#!/bin/sh\ntouch " + ran + "\n"
	}
	texts["tools/gitinclude"] = "[alias]\n\tst = !touch " + ran + "\n"
	laidFiles(t, w.Dir(), 0o755, texts)
	for name := range harmless {
		laidFiles(t, w.Dir(), 0o644, map[string]string{name: "other\n"})
	}
	changes, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := autorunOf(t.Context(), w, changes)
	if err != nil {
		t.Fatal(err)
	}
	rest := leaveUnnamed(w, files, changes, nil)
	var brought []string
	for _, c := range rest {
		brought = append(brought, c.Path)
		if why := led[c.Path]; why != "" {
			t.Errorf("%s is brought over unnamed, and %s leads there", c.Path, why)
		}
	}
	for name := range harmless { // the control
		if !slices.Contains(brought, name) {
			t.Errorf("%s is left out, and nothing leads there", name)
		}
	}
	if slices.Contains(brought, "bin/tool") {
		t.Error("a program in a directory that shells look for programs in is brought over unnamed")
	}
	if _, errs := w.Apply(t.Context(), rest, false); len(errs) > 0 {
		t.Fatal(errs)
	}
	commit := func() bool {
		t.Helper()
		_ = gitIn(t, original, "commit", "--allow-empty", "-q", "-m", "x")
		_ = gitIn(t, original, "st")
		_, err := os.Stat(ran)
		return err == nil
	}
	if commit() {
		t.Error("git runs what came from the copy")
	}
	// The control: with what was left out, it does. A name brings what it names.
	rest = leaveUnnamed(w, files, changes, []string{"tools/hooks/pre-commit"})
	if _, errs := w.Apply(t.Context(), slices.DeleteFunc(rest, func(c workspace.Change) bool { return c.Path != "tools/hooks/pre-commit" }), false); len(errs) > 0 || !commit() {
		t.Errorf("git does not run a hook that was named: %v", errs)
	}
}

// TestCopyWithoutWhatIsHidden: a run's copy has nothing that the ignore file of its directory hides.
func TestCopyWithoutWhatIsHidden(t *testing.T) {
	t.Setenv("COFFERDAM_STATE", filepath.Join(t.TempDir(), "state"))
	dir := t.TempDir()
	laidFiles(t, dir, 0o644, map[string]string{".aiignore": "/conf/key\n", "conf/key": "secret", "conf/other": ""})
	r := &runner{}
	r.request.Run = "run-1"
	if err := r.makeWorkspace(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"conf/key": false, "conf/other": true, ".aiignore": true} {
		if _, err := os.Lstat(filepath.Join(r.workspace.Dir(), name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
