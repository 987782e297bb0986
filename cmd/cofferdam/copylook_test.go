package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHiddenNamesArePointedOut: what is copied out of a sandbox is looked at as what is brought over
// from a copy: a hidden name of which nothing is known is pointed out. The control is one that is known.
func TestHiddenNamesArePointedOut(t *testing.T) {
	own(t.Setenv, t.TempDir())
	for name, word := range map[string]string{".envrc": "tools run", ".somethingrc": "their names are hidden"} {
		dir := t.TempDir()
		laidFiles(t, dir, 0o644, map[string]string{name: ""})
		c := &copying{}
		c.pointOut(t.Context(), dir, []string{name}, nil)
		if all := strings.Join(c.notes, "\n"); !strings.Contains(all, name) || !strings.Contains(all, word) {
			t.Errorf("%s: %q", name, all)
		}
	}
}

// TestCopiedIntoWhatIsRun: a file is looked at by where it lies on this machine, and with what was there before, not by
// its name alone. The controls are the same files, copied with the directory that gives them their meaning.
func TestCopiedIntoWhatIsRun(t *testing.T) {
	own(t.Setenv, t.TempDir())
	repository := map[string]string{"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "config": "[core]\n\tfsmonitor = ./evil\n"}
	for what, c := range map[string]struct {
		into   string // below the directory
		copied []string
	}{
		"control: a repository at once":          {".", []string{"HEAD", "objects/x", "refs/x", "config"}},
		"the settings of one that is there":      {".", []string{"config"}},
		"control: with its directory":            {".", []string{".vscode/tasks.json"}},
		"into the directory":                     {".vscode", []string{"tasks.json"}},
		"into a directory of git's":              {".git/hooks", []string{"pre-commit"}},
		"into a directory of an agent's, deeper": {".claude/hooks", []string{"run.sh"}},
		"where git's settings above lead":        {"tools", []string{"pre-commit", ".git/HEAD"}},
	} {
		dir := t.TempDir()
		files := map[string]string{}
		if c.into == "tools" { // and is no tree of its own for what was copied
			files[".git/config"] = "[core]\n\thooksPath = tools\n"
		}
		if c.into == "." && c.copied[0] != ".vscode/tasks.json" {
			files = repository
		}
		for _, name := range c.copied {
			files[filepath.Join(c.into, name)] = files[filepath.Join(c.into, name)]
		}
		laidFiles(t, dir, 0o644, files)
		out := &copying{}
		out.pointOut(t.Context(), filepath.Join(dir, c.into), c.copied, nil)
		if all := strings.Join(out.notes, "\n"); !strings.Contains(all, "look at") || !strings.Contains(all, c.copied[0]) {
			t.Errorf("%s: nothing is pointed out of %q", what, c.copied)
		}
	}
}

// TestCopiedToWhereThePersonsSettingsLead: the directory itself into which a file is copied is one that the person's
// own surroundings lead to, or in which programs keep their settings. The controls are the same files elsewhere, and
// below what a visible link leads to.
func TestCopiedToWhereThePersonsSettingsLead(t *testing.T) {
	own(t.Setenv, t.TempDir())
	home := resolvedFromHere(t.TempDir())
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("PATH", filepath.Join(home, "tools")+":"+os.Getenv("PATH"))
	laidFiles(t, home, 0o600, map[string]string{
		".gitconfig": "[core]\n\thooksPath = " + filepath.Join(home, "mine") + "\n",
		".bashrc":    ". ~/shell/one.txt\n",
		".config/x":  "",
		"linked/x":   "",
		"data/x":     "",
	})
	for link, to := range map[string]string{".config/editor": "linked", "shown": "data"} {
		if err := os.Symlink(filepath.Join(home, to), filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[string]bool{
		"tools/ls": true, "elsewhere/ls": false,
		"mine/pre-commit.txt": true, "elsewhere/pre-commit.txt": false,
		"shell/one.txt": true, "elsewhere/one.txt": false,
		"linked/settings.txt": true, "data/settings.txt": false,
		".ssh/authorized_keys": true, "elsewhere/authorized_keys": false,
		".config/some/settings.txt": true, ".somewhere/results/settings.txt": false,
	} {
		laidFiles(t, home, 0o600, map[string]string{at: ""})
		c := &copying{}
		c.pointOut(t.Context(), filepath.Join(home, filepath.Dir(at)), []string{filepath.Base(at)}, nil)
		if got := strings.Contains(strings.Join(c.notes, "\n"), filepath.Base(at)); got != want {
			t.Errorf("%s is pointed out: %v; %q", at, got, c.notes)
		}
	}
}

// TestPlainNamesAreNotPointedOut is the control: a file that nothing runs is told of nowhere, also below a
// directory whose name is hidden.
func TestPlainNamesAreNotPointedOut(t *testing.T) {
	own(t.Setenv, t.TempDir())
	for _, into := range []string{".", "results", ".somewhere/results"} {
		dir := t.TempDir()
		laidFiles(t, dir, 0o644, map[string]string{filepath.Join(into, "out.csv"): ""})
		c := &copying{}
		c.pointOut(t.Context(), filepath.Join(dir, into), []string{"out.csv"}, nil)
		if len(c.notes) != 0 {
			t.Errorf("%s: %q", into, c.notes)
		}
	}
}
