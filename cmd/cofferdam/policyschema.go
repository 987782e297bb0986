package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

func newPolicySchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a policy document, for editors",
		Long: `Prints a JSON Schema (draft 7) of the policy document. An editor that has it
completes keys and marks slips as you type. It refuses nothing that "policy check"
accepts, and "policy check" finds more: versions, package names, expressions.`,
		Example: "  cofferdam policy schema > policy.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := policy.Schema()
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
}
