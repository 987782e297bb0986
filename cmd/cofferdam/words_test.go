package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// eachCommand visits all commands that a person can name.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			eachCommand(sub, visit)
		}
	}
}

// TestMiscountedArgumentsAreNamed: one word too many is named, one that is missing is said to be, and nothing
// of a command line is told in numbers of arguments.
func TestMiscountedArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || cmd.Args == nil {
			return
		}
		var many []string
		for range 9 {
			many = append(many, "surplus")
			if err := cmd.Args(cmd, many); err != nil && (strings.Contains(err.Error(), "arg(s)") || strings.Contains(err.Error(), "unknown command")) {
				t.Errorf("%s with %d: %s", cmd.CommandPath(), len(many), err)
			}
		}
		if err := cmd.Args(cmd, nil); err != nil && strings.Contains(err.Error(), "arg(s)") {
			t.Errorf("%s alone: %s", cmd.CommandPath(), err)
		}
	})
	for line, want := range map[string]string{
		"completion nope bash":  `invalid argument "nope"`,
		"list extra":            `"extra" is one argument too many; write: cofferdam list`,
		"policy check":          "an argument is missing; write: cofferdam policy check FILE",
		"policy check a b c":    `"b" is one argument too many`,
		"audit report":          "an argument is missing; write: cofferdam audit report NAME [RUN]",
		"policy explain a node": "an argument is missing",
	} {
		cmd, rest, err := newRoot().Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Args(cmd, rest); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestAnEmptyArgumentIsNone: a script's variable that is not set names nothing, and is not looked for. The arguments
// of a command inside may be empty.
func TestAnEmptyArgumentIsNone(t *testing.T) {
	t.Parallel()
	seen := 0
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.HasSubCommands() || !cmd.Runnable() {
			return
		}
		if cmd.Args == nil {
			t.Errorf("%s takes what comes", cmd.CommandPath())
			return
		}
		if cmd.Args(cmd, []string{"sb1"}) != nil {
			return
		}
		seen++
		if err := cmd.Args(cmd, []string{""}); err == nil || !strings.Contains(err.Error(), "an argument is empty") {
			t.Errorf("%s: %v", cmd.CommandPath(), err)
		}
	})
	if seen < 30 {
		t.Errorf("INCONCLUSIVE: %d commands take an argument", seen)
	}
	for _, line := range []string{"exec", "run", "plan", "policy suggest", "ssh", "mcp install"} {
		cmd, _, err := newRoot().Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Args(cmd, []string{"sb1", "printf", ""}); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNearestCommand: two letters that changed places are nearer than two others, of several that are as near all are
// named, and none that does the opposite.
func TestNearestCommand(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"rnu": "run", "exce": "exec", "lsit": "list", "pasue": "pause", "klil": "kill", "destroyy": "destroy", "test": "", "zzzzzz": "",
		"re": "reload or resume", "rn": "", "ru": "run", "r": "", "unpause": "", "top": "", "detach": "", "lis": "list",
	} {
		got := instead(newRoot(), typed)
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
	for group, typed := range map[string]string{"policy": "export", "audit": "unseal", "approvals": "undeny"} {
		cmd, _, err := newRoot().Find([]string{group})
		if err != nil {
			t.Fatal(err)
		}
		if got := instead(cmd, typed); strings.Contains(got, "did you mean") {
			t.Errorf("%s %s: %q", group, typed, got)
		}
	}
}

// TestACommandIsFoundInItsGroup: somebody who leaves the group out is told where the command is, for each command of
// each group whose name is none of the program's own.
func TestACommandIsFoundInItsGroup(t *testing.T) {
	t.Parallel()
	root := newRoot()
	looked := 0
	for _, group := range root.Commands() {
		for _, sub := range group.Commands() {
			if group.Hidden || sub.Hidden || subcommand(root, sub.Name()) != nil {
				continue
			}
			looked++
			if told := instead(root, sub.Name()); !strings.HasPrefix(told, "; did you mean ") || !strings.Contains(told, group.Name()+" "+sub.Name()) {
				t.Errorf("%s: %q", sub.Name(), told)
			}
		}
	}
	if looked < 20 {
		t.Errorf("INCONCLUSIVE: %d commands of groups", looked)
	}
}

// TestHelpOfNoCommand: is refused as the command is, and no other command's help is printed in its place.
func TestHelpOfNoCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"help rnu":         `there is no command "rnu"; did you mean run?`,
		"help policy inti": `there is no command "inti"; did you mean init?`,
		"help suggest":     "did you mean policy suggest?",
	} {
		wantRefused(t, line, want)
	}
	for _, line := range []string{"help", "help run", "help policy init", "help exit-codes"} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestAGroupNamesItsCommands: where no command is near to what was typed.
func TestAGroupNamesItsCommands(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		if !cmd.HasAvailableSubCommands() || !cmd.HasParent() {
			return
		}
		told := instead(cmd, "zzzzzz")
		for _, sub := range cmd.Commands() {
			if !strings.Contains(told, sub.Name()) {
				t.Errorf("%s: no %s in %q", cmd.CommandPath(), sub.Name(), told)
			}
		}
	})
}

// TestFlagsOfOtherPrograms: what to do here instead is told, and names a command and flags that there are.
func TestFlagsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"run --memory 1g":   "defaults.max_memory_mb",
		"create --cpus 2":   "defaults.max_cpu",
		"run --user root":   "exec has --user",
		"run -d":            "cofferdam create",
		"run --name x":      "--run-id",
		"run --image x":     "--template",
		"kill --all":        "and the daemon itself",
		"run --rm":          "removed at its end",
		"exec --mmory 1 sb": "unknown flag",
	} {
		wantRefused(t, line, want)
	}
}

// TestAHintIsForOneCommand: a group's command that has the name of another one has not its flags.
func TestAHintIsForOneCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"token create --cpus 2 ci": "did you mean --cpu?",
		"token create --image x":   "unknown flag: --image (see cofferdam token create",
		"template rm --all":        "unknown flag: --all (see cofferdam template rm",
		"home rm --all":            "unknown flag: --all (see cofferdam home rm",
	} {
		wantRefused(t, line, want)
	}
}

// wantRefused looks whether a command line is refused with these words.
func wantRefused(t *testing.T, line, want string) {
	t.Helper()
	root := newRoot()
	root.SetArgs(strings.Fields(line))
	root.SilenceErrors, root.SilenceUsage = true, true
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v", line, err)
	}
}
