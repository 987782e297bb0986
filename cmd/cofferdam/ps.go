package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// newPs is `list` by the name that people try first.
func newPs() *cobra.Command {
	cmd := newList()
	cmd.Use, cmd.Aliases = "ps", nil
	cmd.Short = `List the sandboxes, as "list" does`
	cmd.Example = "  cofferdam ps\n  cofferdam ps --state running\n  cofferdam ps --json"
	return cmd
}

// removal is one line of `rm --json`.
type removal struct {
	Sandbox string `json:"sandbox"`
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
}

// newRemove is `kill` by the name that people try first.
func newRemove() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "rm SANDBOX...",
		Short:   `End sandboxes and remove them, as "kill" does`,
		GroupID: groupWork,
		Long: `Ends everything that runs in the sandboxes and removes them. With --json the results
are one array.`,
		Example: "  cofferdam rm sb4f1c\n  cofferdam rm --json sb4f1c sb90ab",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			removals, err := remove(cmd.Context(), "rm", ids)
			if !asJSON || removals == nil {
				return err
			}
			if werr := writeJSON(os.Stdout, removals); werr != nil || err == nil {
				return werr
			}
			return &exitError{code: exitCode(err)} // the array says why
		},
		ValidArgsFunction: completeSandboxes,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// remove ends sandboxes, each of them whatever becomes of the others.
func remove(ctx context.Context, verb string, ids []string) ([]removal, error) {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	c, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	var all []removal
	var failures []error
	for _, id := range ids {
		r := removal{Sandbox: id, Removed: true}
		if err := c.DestroySandbox(ctx, id); err != nil {
			r.Removed, r.Error = false, err.Error()
			failures = append(failures, fmt.Errorf("%s %s: %w", verb, id, err))
		}
		all = append(all, r)
	}
	return all, errors.Join(failures...)
}
