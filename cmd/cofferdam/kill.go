package main

import (
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
		Long: `Ends everything that runs in a sandbox and removes it. A client that is attached to
one of its commands is told.`,
		Example: "  cofferdam kill sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			_, err := remove(cmd.Context(), "kill", ids)
			return err
		},
		ValidArgsFunction: completeSandboxes,
	}
}
