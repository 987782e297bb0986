package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

func newPolicySuggest() *cobra.Command {
	var run string
	var write bool
	cmd := &cobra.Command{
		Use:   "suggest --run ID",
		Short: "Turn a run's refusals into a change of its policy",
		Long: `Prints, as a diff, what would have to change in a run's policy for the packages
that it was refused to be allowed. Read it before you agree to it: an agent
chose these names. --write makes the change in the file, provided that it is
still the one that the run had.`,
		Example: "  cofferdam policy suggest --run nightly-42\n  cofferdam policy suggest --run nightly-42 --write",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if run == "" {
				return usage(cmd, "no run given; write --run ID, as the end of cofferdam run shows it")
			}
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			s, err := c.Suggest(ctx, run)
			if err != nil {
				return err
			}
			return suggest(s, write)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "the run")
	cmd.Flags().BoolVar(&write, "write", false, "change the policy file")
	register(cmd, "run", completeRuns)
	return cmd
}

func suggest(s api.Suggestion, write bool) error {
	if bytes.Equal(s.Document, s.Suggested) {
		_, err := fmt.Fprintln(os.Stderr, "cofferdam: the run was refused nothing that a change of its policy would allow")
		return err
	}
	if _, err := fmt.Print(printableText(s.Diff)); err != nil {
		return err
	}
	if !write {
		return nil
	}
	if err := rewrite(s); err != nil {
		return err
	}
	_, err := fmt.Fprintf(os.Stderr, "cofferdam: changed %s\n", printable(s.Source))
	return err
}

// rewrite replaces the policy file in one step, if it is still what the run
// had.
func rewrite(s api.Suggestion) error {
	if s.Source == "" {
		return fault.Invalid("the run had the built-in policy, which is no file; save the lines that begin with + as a policy and give it with --policy")
	}
	path, err := filepath.EvalSymlinks(s.Source)
	if err != nil {
		return fault.Invalid("the policy %s %s", s.Source, because(err))
	}
	now, err := readDocument("policy", path, maxPolicy)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, s.Document) {
		return fault.Invalid("the policy %s was changed since the run; apply the diff by hand", s.Source)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the policy: %w", err)
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".cofferdam-policy-*")
	if err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	_, err = draft.Write(s.Suggested)
	err = errors.Join(err, draft.Chmod(info.Mode().Perm()), draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the policy: %w", err), os.Remove(draft.Name()))
	}
	return nil
}
