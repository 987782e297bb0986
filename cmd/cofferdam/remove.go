package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newKill() *cobra.Command {
	return onEach(&cobra.Command{
		Use:     "kill SANDBOX...",
		Aliases: []string{"destroy"},
		Short:   "End sandboxes and remove them",
		GroupID: groupWork,
		Long: `Ends everything that runs in a sandbox and removes it. A client that is attached to
one of its commands is told.`,
		Example:           "  cofferdam kill sb4f1c",
		ValidArgsFunction: completeSandboxes,
	}, "removing", (*client.Client).DestroySandbox)
}

// removal is one line of `rm --json`.
type removal struct {
	Sandbox string `json:"sandbox"`
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
}

// newRemove is `kill` by the name that people try first.
func newRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm SANDBOX...",
		Short:   `End sandboxes and remove them, as "kill" does`,
		GroupID: groupWork,
		Long: `Ends everything that runs in the sandboxes and removes them. With --json the results
are one array.`,
		Example:           "  cofferdam rm sb4f1c\n  cofferdam rm --json sb4f1c sb90ab",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeSandboxes,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		var removals []removal
		err := doEach(cmd.Context(), "removing", ids, func(c *client.Client, ctx context.Context, id string) error {
			r := removal{Sandbox: id, Removed: true}
			err := c.DestroySandbox(ctx, id)
			if err != nil {
				r.Removed, r.Error = false, err.Error()
			}
			removals = append(removals, r)
			return err
		})
		if !*asJSON || removals == nil {
			return err
		}
		if werr := ui.WriteJSON(os.Stdout, removals); werr != nil || err == nil {
			return werr
		}
		return &exitError{code: exitCode(err)} // the array says why
	}
	return cmd
}
