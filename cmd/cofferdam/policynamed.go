package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newPolicyPut() *cobra.Command {
	var live bool
	cmd := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Keep a policy in the daemon under a name",
		Long: `Keeps a policy document in the daemon under a name, for tokens ("cofferdam token
create --policy NAME"). An existing one is replaced in one step, for sandboxes made
from then on. Errors in a document have file:line:column, and the old document stays in
force. Tokens that name no policy have the one named "default".

Live sandboxes keep the policy that they began under. With --apply-to-live they, and
copies of them, are narrowed by the new one: packages and commands that either policy
refuses are refused from now on, even a file that is being sent. It opens nothing in
them, and can't be taken back.`,
		Example: "  cofferdam policy put data policy.yaml\n  cofferdam policy put data stricter.yaml --apply-to-live",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			document, _, err := loadDeciding(args[1])
			if err != nil {
				return err
			}
			source, err := fromHere(args[1]) // the name by which somebody was asked about it
			if err != nil {
				return fmt.Errorf("find the policy %s: %w", args[1], err)
			}
			put, err := askDaemon(cmd, func(c *client.Client, ctx context.Context) (api.NamedPolicy, error) {
				return c.PutPolicy(ctx, args[0], api.PutPolicy{Source: filepath.Clean(source), Document: document, ApplyToLive: live})
			})
			if err != nil {
				return err
			}
			if _, err := fmt.Printf("%s  %s\n", ui.Printable(put.Name), ui.Printable(put.Digest)); err != nil {
				return err
			}
			return tellLive(put)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return completePolicies(cmd, args, word)
			}
			return completePolicyFile(cmd, args, word)
		},
	}
	cmd.Flags().BoolVar(&live, "apply-to-live", false, "narrow the live sandboxes of this name by it, too")
	return cmd
}

// tellLive says which policy the live sandboxes of a name are judged by.
func tellLive(put api.NamedPolicy) error {
	var err error
	switch {
	case put.Live == 0:
	case put.Narrowed == 0:
		_, err = fmt.Printf("%d live sandboxes keep the policy that they began under (--apply-to-live narrows them)\n", put.Live)
	default:
		_, err = fmt.Printf("%d of %d live sandboxes of an earlier policy are narrowed by it from now on\n", put.Narrowed, put.Live)
	}
	return err
}

func newPolicyList() *cobra.Command {
	return lister(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the policies that the daemon keeps under names",
		Example: "  cofferdam policy list\n  cofferdam policy list --json",
	}, (*client.Client).Policies, []string{"POLICY", "CHANGED", "DIGEST"}, func(p api.NamedPolicy) []string {
		return []string{p.Name, cmp.Or(ui.Moment(p.Changed), "built in"), p.Digest}
	})
}

func newPolicyShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Write the document that the daemon keeps under a name",
		Example: "  cofferdam policy show data > policy.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := askFor(cmd, (*client.Client).Policy, args[0])
			if err != nil {
				return err
			}
			return writeAnswer(p, asJSON, func(w io.Writer, p api.NamedPolicy) error {
				_, err := w.Write(p.Document)
				return err
			})
		},
		ValidArgsFunction: completeFirst(completePolicies),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newPolicyRemove() *cobra.Command {
	return onEach(&cobra.Command{
		Use:     "rm NAME...",
		Aliases: []string{"remove"},
		Short:   "Remove policies that no token may use",
		Long: `Removes policies that the daemon keeps under names. A policy that a token may use is
not removed. Sandboxes that were made under one keep it.`,
		Example:           "  cofferdam policy rm data",
		ValidArgsFunction: completePolicies,
	}, "removing", (*client.Client).RemovePolicy)
}
