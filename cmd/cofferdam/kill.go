package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// longPatience bounds what writes or removes a sandbox.
const longPatience = 5 * time.Minute

func newKill() *cobra.Command {
	return &cobra.Command{
		Use:     "kill SANDBOX...",
		Aliases: []string{"destroy"},
		Short:   "End sandboxes and remove them",
		GroupID: groupWork,
		Long: `Ends all that runs in a sandbox and removes it. A client that is attached to a
command of it is told so.`,
		Example: "  cofferdam kill sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), longPatience)
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			var failures []error
			for _, id := range ids {
				if err := c.DestroySandbox(ctx, id); err != nil {
					failures = append(failures, fmt.Errorf("kill %s: %w", id, err))
				}
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: completeSandboxes,
	}
}
