package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeFlaky writes down the part that it is to run, changes a file that is committed in the one that the file changer names,
// and fails at the one that the file broken names.
const fakeFlaky = `#!/bin/sh
[ "$1" = list ] || echo "$1" >>ran
[ "$1" != "$(cat changer 2>/dev/null)" ] || echo >>fake
[ "$1" != "$(cat broken 2>/dev/null)" ]
`

// TestThePartsOfTestAllAreResumed runs scripts/test-all in a repository of its own.
func TestThePartsOfTestAllAreResumed(t *testing.T) {
	script, err := os.ReadFile("../../scripts/test-all")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("scripts/test-all", string(script))
	write("fake", fakeFlaky)
	write(".gitignore", "ran\nbroken\nchanger\n.cofferdam\n")
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@team.example", "-c", "commit.gpgsign=false"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "all")
	// ran are the parts that were begun; vm is make's.
	ran := func(fails bool, parts string) string {
		t.Helper()
		_ = os.Remove(filepath.Join(dir, "ran"))
		cmd := exec.Command("sh", "scripts/test-all", parts)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "FLAKY=./fake", "PACKAGES=./...", "MAKE=true")
		if out, err := cmd.CombinedOutput(); (err != nil) != fails {
			t.Fatalf("%s: %v\n%s", parts, err, out)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "ran"))
		return strings.Join(strings.Fields(string(text)), " ")
	}
	const until, from = "forget unit containment containers dockers machines", "advisory differential sdk isolation python e2e"
	for _, step := range []struct {
		title, broken, parts, want string
		fails                      bool
		before                     func()
	}{
		{title: "to the first that fails", broken: "release", want: until + " release", fails: true},
		{title: "from there on", want: "release " + from},
		{title: "all passed"},
		{title: "by name", parts: "race,sdk", want: "unit sdk"},
		{title: "none of that name", parts: "race,speed", fails: true},
		{title: "a change that was not committed", before: func() { write("fake", fakeFlaky+"\n") }, want: until + " release " + from},
		{title: "counts as no pass", want: until + " release " + from},
		{title: "another commit", before: func() { git("commit", "-q", "-a", "-m", "more") }, want: until + " release " + from},
		{title: "which has passed"},
		{title: "no name", parts: ",", fails: true},
		{title: "a pattern", parts: "*", fails: true},
		{title: "a file that nobody has committed", before: func() { write("new.go", "package new") }, want: until + " release " + from},
		{title: "is no pass, either", want: until + " release " + from},
		{title: "a file that changes meanwhile", before: func() {
			git("add", "new.go")
			git("commit", "-q", "-m", "new")
			write("changer", "containers")
		}, want: until + " release " + from},
		{title: "of whose parts those before have passed", before: func() {
			write("changer", "")
			git("checkout", "-q", "fake")
		}, want: "containers dockers machines release " + from},
		{title: "no repository", before: func() {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, want: until + " release " + from},
	} {
		t.Run(step.title, func(t *testing.T) {
			write("broken", step.broken)
			if step.before != nil {
				step.before()
			}
			if got := ran(step.fails, step.parts); got != step.want {
				t.Errorf("it ran %q, and not %q", got, step.want)
			}
		})
	}
}
