package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	complain(os.Stderr, err)
	return exitCode(err)
}

// newRoot is the whole command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "cofferdam",
		Short: "Run an agent's code sealed, and let in only what a policy has cleared",
		Long: `Cofferdam runs code that an AI agent wrote in a sandbox that has no network. pip, uv,
npm, pnpm and go work in it as usual, but a policy judges each package, and a file is
verified and recorded before it gets in.

On a terminal, tables fit its width and have colours, unless NO_COLOR is set, and a
step that takes more than a second says so. Other output has none of this; there, such a
step says so every 15 seconds, on the standard error.`,
		Example: `  cofferdam run -- python3 -c 'print("hello")'
  cofferdam run --policy policy.yaml --mount .:/workspace:rw -- python3 task.py
  cofferdam policy check policy.yaml
  cofferdam audit list --outcome blocked
  cofferdam --version`,
		Version:       fmt.Sprintf("%s (%s)", version, runtime.Version()),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("cofferdam {{.Version}}\n") // as "cofferdam version" begins
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Sandboxes:"},
		&cobra.Group{ID: groupReview, Title: "Policy and record:"},
		&cobra.Group{ID: groupHost, Title: "This installation:"},
	)
	root.SetHelpCommandGroupID(groupHost)
	root.AddCommand(newRun(), newApply(), newProject(), newAttach(), newList(), newPsAlias(), newKill(), newRemove(), newTemplate())
	root.AddCommand(newCreate(), newExec(), newCall(), newShell(), newSSH(), newSSHConfig(), newSSHProxy(), newCopy(), newLogs(), newStats(), newEvents())
	root.AddCommand(newPause(), newResume(), newSnapshot(), newSnapshots(), newFork(), newExtend(), newHome())
	root.AddCommand(newMCP())
	root.AddCommand(newPlan(), newPolicy(), newApprovals(), newAdvisory(), newAudit(), newWhy())
	root.AddCommand(newDoctor(), newCache(), newBackup(), newReload(), newClock(), newVersion(), newStop(), newCompletion(), exitCodesTopic())
	root.AddCommand(newToken(), newEnv())
	root.AddCommand(roleCommands()...)
	remoteFlags(root)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		cmd.SetContext(withRemote(cmd.Context(), remoteOf(cmd)))
	}
	strict(root)
	strictHelp(root)
	return root
}

// strictHelp has `cofferdam help WORD` refuse a word as the command would be refused that it is asked about: cobra
// prints the help of the nearest group above, with success.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.RunE = func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if len(rest) > 0 && (err != nil || cmd.HasSubCommands()) {
				return usageError(cmd, "there is no command %q%s", rest[0], instead(cmd, rest[0]))
			}
			return cmd.Help()
		}
		root.RemoveCommand(help) // it is added when the program is run
	}
}

// inGroups are the commands of other groups that have exactly this name, with their group's: people leave that out.
func inGroups(cmd *cobra.Command, typed string) (found []string) {
	for _, group := range cmd.Root().Commands() {
		for _, sub := range group.Commands() {
			if group != cmd && !group.Hidden && !sub.Hidden && sub.Name() == typed {
				found = append(found, group.Name()+" "+typed)
			}
		}
	}
	return found
}

// strict makes every wrong word an error of one sentence and exit code 2. Left
// alone, cobra prints the help of a command group, with success, for a
// subcommand that does not exist.
func strict(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(flagError)
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
	if !cmd.HasSubCommands() {
		if args := cmd.Args; args != nil || !cmd.Hidden {
			if args == nil {
				args = cobra.ArbitraryArgs
			}
			cmd.Args = func(cmd *cobra.Command, given []string) error {
				if slices.Contains(ownArguments(cmd, given), "") {
					return usageError(cmd, "an argument is empty, as that of a shell's variable is which is not set; write: %s", cmd.UseLine())
				}
				if err := args(cmd, given); err != nil {
					return usageError(cmd, "%s; write: %s", miscounted(args, cmd, given, err), cmd.UseLine())
				}
				return nil
			}
		}
		return
	}
	own := cmd.RunE
	if own == nil { // a group is runnable only to refuse; its usage does not show that
		cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), "{{if .Runnable}}", "{{if not .HasAvailableSubCommands}}", 1))
		own = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return own(cmd, args)
		}
		return usageError(cmd, "there is no command %q%s", args[0], instead(cmd, args[0]))
	}
}

// ownArguments are those that name something to this command, without what another program gets, which may
// well be empty.
func ownArguments(cmd *cobra.Command, given []string) []string {
	for _, others := range []string{"COMMAND [ARGUMENT...]", "[SSH-ARGUMENT...]", "[-- FLAG...]"} {
		if strings.Contains(cmd.Use, others) {
			return given[:min(1, len(given))]
		}
	}
	return given
}

// miscounted is what is wrong with arguments of which cobra says that they are too few or too many, in
// numbers alone. Any other error is a sentence of ours.
func miscounted(args cobra.PositionalArgs, cmd *cobra.Command, given []string, err error) string {
	text := err.Error()
	if !slices.ContainsFunc([]string{"accepts ", "requires at least ", "unknown command "}, func(start string) bool { return strings.HasPrefix(text, start) }) {
		return text
	}
	for n := range slices.Backward(given) {
		if args(cmd, given[:n]) == nil {
			return fmt.Sprintf("%q is one argument too many", given[n])
		}
	}
	return "an argument is missing"
}

// instead is what the person may have meant: of the program's own words a command of that name in a group, else the
// nearest commands, of which several may be as near. Where none is, those of a group are named.
func instead(cmd *cobra.Command, typed string) string {
	if found := inGroups(cmd, typed); len(found) > 0 && !cmd.HasParent() {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	var names, near []string
	best := mostApart(typed)
	for _, sub := range cmd.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		names = append(names, sub.Name())
		name, distance := nearestName(sub, typed)
		switch {
		case distance < best:
			near, best = []string{name}, distance
		case distance == best:
			near = append(near, name)
		}
	}
	switch {
	case len(near) > 0:
		return "; did you mean " + strings.Join(near, " or ") + "?"
	case cmd.HasParent():
		return "; there are " + strings.Join(names, ", ")
	}
	return ""
}

// nearestName is the one of a command's names that is nearest to what was typed, and how far it is.
func nearestName(cmd *cobra.Command, typed string) (nearest string, best int) {
	best = math.MaxInt
	for _, name := range append([]string{cmd.Name()}, cmd.Aliases...) {
		if distance, is := typingApart(name, typed); is && distance < best {
			nearest, best = name, distance
		}
	}
	return nearest, best
}

// complain writes an error for a person. One that carries its own place in a
// file begins with it, so that editors find it.
func complain(w io.Writer, err error) {
	if quiet, ok := errors.AsType[*exitError](err); ok && (quiet.err == nil || quiet.said) {
		return
	}
	if located(err) {
		_, _ = fmt.Fprintln(w, ui.PrintableText(err.Error()))
		return
	}
	_, _ = fmt.Fprintf(w, "cofferdam: %s\n", addLists(ui.PrintableText(err.Error())))
}

// located reports whether every line of an error has its place in a file.
func located(err error) bool {
	_, ok := errors.AsType[policy.Problems](err)
	return ok
}
