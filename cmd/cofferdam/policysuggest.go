package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// suggestFlags are what was typed.
type suggestFlags struct {
	run, digest      string
	write, noResolve bool
	mounts           []string
	workdir          string
}

func newPolicySuggest() *cobra.Command {
	var f suggestFlags
	cmd := &cobra.Command{
		Use:   "suggest [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Turn a run's refusals into a change of its policy",
		Long: `Prints a diff of a run's policy that would allow what the run asked for and was
refused: an entry for each package that a command named, with what it requires
(with_dependencies) and its version as the cap, or the lines that "cofferdam why" prints.
The new policy is tried in separate sandboxes, as "cofferdam plan" does it, and mended
until the plan is refused nothing; one under which the same install still fails is not
suggested. Where the plan does not show that it goes through, that is said with the diff.
It tries the COMMAND, in the mounts that you name, as the end of "cofferdam run"
prints it, or the first eight installs of a shell's text (bash -c), and names those behind them; without one, the packages are installed by name. --no-resolve tries nothing.
Read the diff before you agree: an agent chose these names. --write changes the file, if
it is still the one that the run had: it shows the diff and asks. Where nobody can be
asked, --digest names the new policy that somebody has read, as it was printed with the
diff; the run may have asked for more since.`,
		Example: "  cofferdam policy suggest\n  cofferdam policy suggest --run nightly-42\n  cofferdam policy suggest --run nightly-42 --mount .:/workspace -- npm install\n  cofferdam policy suggest --run nightly-42 --write\n  cofferdam policy suggest --run nightly-42 --write --digest sha256:...\n  cofferdam policy suggest --run nightly-42 --no-resolve",
		RunE:    func(cmd *cobra.Command, args []string) error { return f.suggest(cmd, args) },
	}
	set := cmd.Flags()
	set.SetInterspersed(false) // the command's own flags are the command's
	set.StringVar(&f.run, "run", "", "the run (default: the last one)")
	set.StringArrayVar(&f.mounts, "mount", nil, "show a host path to the COMMAND, read-only: SOURCE:DESTINATION")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which the COMMAND starts")
	set.BoolVar(&f.noResolve, "no-resolve", false, "go by what the run was refused, and try nothing")
	set.BoolVar(&f.write, "write", false, "change the policy file")
	set.StringVar(&f.digest, "digest", "", "write only the policy that has this digest, which somebody has read")
	registerCompletion(cmd, "run", completeRuns)
	incomplete(cmd, "digest", "workdir")
	return cmd
}

// checkFlags finds what is wrong with the flags themselves.
func (f *suggestFlags) checkFlags(cmd *cobra.Command, args []string) error {
	switch {
	case f.run == "" && f.write: // another run may be the last one by now than the one whose diff was read
		return usageError(cmd, "--write is for the suggestion of one run; write --run ID, as it was printed with the diff")
	case f.digest != "" && !f.write:
		return usageError(cmd, "--digest says what --write may write, which is not given")
	case len(args) == 0 && (len(f.mounts) > 0 || f.workdir != ""):
		return usageError(cmd, "--mount and --workdir are for a command, which is not given; write it after --, as in: -- npm install")
	case len(args) > 0 && f.noResolve:
		return usageError(cmd, "a command is given to be tried, and --no-resolve tries nothing; leave one of them out")
	}
	return nil
}

// suggest is the command once the flags are parsed.
func (f *suggestFlags) suggest(cmd *cobra.Command, args []string) error {
	if err := f.checkFlags(cmd, args); err != nil {
		return err
	}
	cwd, err := currentDirectory()
	if err != nil {
		return err
	}
	request, err := (runFlags{mounts: f.mounts, workdir: f.workdir}).sandboxRequest(cwd)
	if err != nil {
		return err
	}
	for i := range request.Mounts {
		request.Mounts[i].ReadWrite = false
	}
	of, rest, err := installsIn(args, request)
	if err != nil {
		return err
	}
	c, err := connectDaemon(cmd.Context())
	if err != nil {
		return err
	}
	if f.run == "" {
		if f.run, err = lastRun(cmd.Context(), c); err != nil {
			return err
		}
	}
	var s api.Suggestion
	var last trial
	if f.noResolve {
		s, err = askSuggestion(cmd.Context(), c, f.run)
	} else {
		s, last, err = suggestion(cmd.Context(), c, f.run, of)
	}
	if err != nil {
		return err
	}
	if line := f.untried(rest); line != "" {
		last.open = slices.Insert(last.open, 0, line)
	}
	return f.offerSuggestion(s, last, args)
}

// lastRun is the run that cofferdam why tells of where nobody names one; it is said which that is.
func lastRun(ctx context.Context, c *client.Client) (string, error) {
	short, cancel := withQuickTimeout(ctx)
	defer cancel()
	refused, err := c.Refusals(short, client.RefusalFilter{})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "cofferdam: of run %s, the last one\n", ui.Printable(refused.Run))
	return refused.Run, nil
}

// commandThatWrites returns the command that writes just this suggestion.
func (f *suggestFlags) commandThatWrites(args []string, digest string) string {
	words := []string{"cofferdam", "policy", "suggest", "--run", f.run, "--write"}
	if f.noResolve {
		words = append(words, "--no-resolve")
	}
	if digest != "" {
		words = append(words, "--digest", digest)
	}
	for _, m := range f.mounts {
		words = append(words, "--mount", m)
	}
	if f.workdir != "" {
		words = append(words, "--workdir", f.workdir)
	}
	if len(args) > 0 {
		words = append(append(words, "--"), args...)
	}
	return ui.ShellLine(words)
}

// offerSuggestion shows a suggestion, and writes it once somebody has agreed to just that. One under which its last trial was
// refused something is not offered; of one whose trial left something unknown that is said.
func (f *suggestFlags) offerSuggestion(s api.Suggestion, last trial, args []string) error {
	for _, line := range s.Stays {
		fmt.Fprintf(os.Stderr, "cofferdam: stays refused: %s\n", ui.Printable(line))
	}
	if len(last.still) > 0 {
		for _, line := range last.still {
			fmt.Fprintf(os.Stderr, "cofferdam: not let in by any entry: %s\n", ui.Printable(line))
		}
		return &exitError{code: exitFailure, err: errors.New("nothing is suggested, since the same install would fail again; --no-resolve prints what entries would let in of it, untried")}
	}
	if bytes.Equal(s.Document, s.Suggested) {
		sayOpen(os.Stderr, last.open)
		_, err := fmt.Fprintf(os.Stderr, "cofferdam: no entry for a package would change anything for this run; what it was refused, and why: cofferdam why --run %s\n", ui.Quoted(f.run))
		return err
	}
	if _, err := fmt.Print(ui.PrintableText(s.Diff)); err != nil {
		return err
	}
	sayOpen(os.Stderr, last.open)
	for _, root := range s.Roots {
		if root.Version == "" {
			fmt.Fprintf(os.Stderr, "cofferdam: no version of %s is known, so its entry has no cap\n", ui.Printable(root.Name))
		}
	}
	is := vouched.Digest(s.Suggested)
	switch {
	case s.Source == "" && f.write:
		return rewrite(s) // which says why not
	case s.Source == "":
		return nil
	case !f.write:
		_, err := fmt.Fprintf(os.Stderr, "cofferdam: to write just this: %s\n", ui.Printable(f.commandThatWrites(args, is)))
		return err
	}
	if agreed, err := agreesToSuggestion(s, f.digest, f.commandThatWrites(args, is)); err != nil || !agreed {
		return err
	}
	if err := rewrite(s); err != nil {
		return err
	}
	_, err := fmt.Fprintf(os.Stderr, "cofferdam: changed %s\n", ui.Printable(s.Source))
	return err
}

// agreesToSuggestion tells whether somebody has read just this suggestion: by its digest, or they are asked.
// again is the command that writes it.
func agreesToSuggestion(s api.Suggestion, digest, again string) (bool, error) {
	is := vouched.Digest(s.Suggested)
	switch {
	case digest != "" && digest != is:
		return false, fault.New(fault.ErrConflict, "this is not the policy that you have read, whose digest was %s: the run has asked for something else since; read the diff, and say: %s", digest, again)
	case digest == "" && !ui.CanAsk():
		return false, fault.Invalid("nobody can be asked here: read the diff, and say: %s", again)
	case digest == "":
		if !ui.IsTerminal(os.Stdout) { // where the diff went
			fmt.Fprint(os.Stderr, ui.PrintableText(s.Diff))
		}
		return ui.Agrees(fmt.Sprintf("write this into %s?", ui.Printable(s.Source))), nil
	}
	return true, nil
}

// rewrite replaces the policy file in one step, if it is still what the run
// had.
func rewrite(s api.Suggestion) error {
	if s.Source == "" {
		return fault.Invalid("the run had the built-in policy, which is not a file; save the lines that begin with + as a policy and give it with --policy")
	}
	e, err := findPolicy(s.Source)
	if err != nil {
		return err
	}
	if !bytes.Equal(e.before, s.Document) {
		return fault.Invalid("the policy %s was changed since the run; apply the diff by hand", s.Source)
	}
	e.after = s.Suggested
	return e.writeFile()
}
