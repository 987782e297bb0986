package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath/vouched"
	"github.com/cofferdam-dev/cofferdam/internal/ui"
)

func newPolicySuggest() *cobra.Command {
	var run, digest string
	var write, noResolve bool
	cmd := &cobra.Command{
		Use:   "suggest --run ID",
		Short: "Turn a run's refusals into a change of its policy",
		Long: `Prints a diff of a run's policy that would allow what the run asked for and was
refused: an entry for each package that a command named, with what it requires
(with_dependencies) and its version as the cap. The new policy is tried in a separate
sandbox, as "cofferdam plan" does it, so that the next run does not meet the next
refusal; --no-resolve skips that. Read the diff before you agree: an agent chose these
names. --write changes the file, if it is still the one that the run had: it shows the
diff and asks. Where nobody can be asked, --digest names the new policy that somebody
has read, as it was printed with the diff; the run may have asked for more since.`,
		Example: "  cofferdam policy suggest --run nightly-42\n  cofferdam policy suggest --run nightly-42 --write\n  cofferdam policy suggest --run nightly-42 --write --digest sha256:...\n  cofferdam policy suggest --run nightly-42 --no-resolve",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if run == "" {
				return usage(cmd, "no run given; write --run ID, as the end of cofferdam run shows it")
			}
			if digest != "" && !write {
				return usage(cmd, "--digest says what --write may write, which is not given")
			}
			c, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			s, err := suggestion(cmd.Context(), c, run, !noResolve)
			if err != nil {
				return err
			}
			again := "cofferdam policy suggest --run " + ui.Quoted(run) + " --write"
			if noResolve {
				again += " --no-resolve"
			}
			return suggest(s, write, digest, again)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "the run")
	cmd.Flags().BoolVar(&noResolve, "no-resolve", false, "go by what the run was refused, and resolve nothing")
	cmd.Flags().BoolVar(&write, "write", false, "change the policy file")
	cmd.Flags().StringVar(&digest, "digest", "", "write only the policy that has this digest, which somebody has read")
	register(cmd, "run", completeRuns)
	incomplete(cmd, "digest")
	return cmd
}

// suggest shows a suggestion, and writes it once somebody has agreed to just that. again is the command that writes it.
func suggest(s api.Suggestion, write bool, digest, again string) error {
	if bytes.Equal(s.Document, s.Suggested) {
		_, err := fmt.Fprintln(os.Stderr, "cofferdam: the run was refused nothing that a change of its policy would allow")
		return err
	}
	if _, err := fmt.Print(ui.PrintableText(s.Diff)); err != nil {
		return err
	}
	for _, root := range s.Roots {
		if root.Version == "" {
			fmt.Fprintf(os.Stderr, "cofferdam: no version of %s is known, so its entry has no cap\n", ui.Printable(root.Name))
		}
	}
	for _, line := range s.Left {
		fmt.Fprintf(os.Stderr, "cofferdam: not let in by this: %s\n", ui.Printable(line))
	}
	switch {
	case s.Source == "" && write:
		return rewrite(s) // which says why not
	case s.Source == "":
		return nil
	case !write:
		_, err := fmt.Fprintf(os.Stderr, "cofferdam: to write just this: %s --digest %s\n", ui.Printable(again), vouched.Digest(s.Suggested))
		return err
	}
	if agreed, err := agreesToSuggestion(s, digest, again); err != nil || !agreed {
		return err
	}
	if err := rewrite(s); err != nil {
		return err
	}
	_, err := fmt.Fprintf(os.Stderr, "cofferdam: changed %s\n", ui.Printable(s.Source))
	return err
}

// agreesToSuggestion tells whether somebody has read just this suggestion: by its digest, or they are asked.
func agreesToSuggestion(s api.Suggestion, digest, again string) (bool, error) {
	is := vouched.Digest(s.Suggested)
	again += " --digest " + is
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
	return e.write()
}
