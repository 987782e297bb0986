package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func newDestroy() *cobra.Command {
	return &cobra.Command{
		Use:     "destroy SANDBOX...",
		Short:   "End sandboxes and remove them",
		GroupID: groupWork,
		Long: `Ends all that runs in a sandbox and removes it. A client that is attached to a
command of it is told so.`,
		Example: "  cofferdam destroy sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Minute)
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			var failures []error
			for _, id := range ids {
				if err := c.DestroySandbox(ctx, id); err != nil {
					failures = append(failures, fmt.Errorf("destroy %s: %w", id, err))
				}
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: completeSandboxes,
	}
}
