package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newHome() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "home",
		Short:   "What agents keep from one run to the next",
		GroupID: groupWork,
		Long: `A home is what an agent keeps below its home directory (its login, its settings, its
history), under a name that you give with "cofferdam run --home NAME". It is yours alone,
one sandbox at a time has it, and it is on this host's disk until you remove it.`,
		Example: `  cofferdam run --agent claude --home desk -- npx claude
  cofferdam home list
  cofferdam home rm desk`,
	}
	cmd.AddCommand(newHomeList(), newHomeRemove())
	return cmd
}

func newHomeList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List your homes",
		Long: `Lists your homes with what they keep, how much of the disk they take, and which sandbox
has them.`,
		Example: `  cofferdam home list
  cofferdam home list --json`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := connectDaemon(cmd.Context())
		if err != nil {
			return err
		}
		all, err := client.Homes(cmd.Context(), c)
		if err != nil {
			return err
		}
		return writeAnswer(all, *asJSON, writeHomes)
	}
	return cmd
}

func writeHomes(w io.Writer, all []api.KeptHome) error {
	rows := [][]string{{"HOME", "KEEPS", "SIZE", "USED", "SANDBOX"}}
	for _, h := range all {
		rows = append(rows, []string{h.Name, strings.Join(h.Keeps, ", "), fmt.Sprintf("%d kB", (h.Bytes+1023)>>10), h.Used.UTC().Format("2006-01-02 15:04Z"), orDash(h.Sandbox)})
	}
	for _, line := range ui.Columns(rows, ui.Width(w)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func newHomeRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm HOME...",
		Aliases: []string{"remove"},
		Short:   "Remove homes, with the logins in them",
		Long: `Removes homes that no sandbox has. What was signed in there is not signed out with the
service: do that there, if somebody may have copied the login.`,
		Example:           "  cofferdam home rm work",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeHomes,
		RunE: func(cmd *cobra.Command, names []string) error {
			return doEach(cmd.Context(), "removing", names, func(c *client.Client, ctx context.Context, name string) error {
				return client.RemoveHome(ctx, c, name)
			})
		},
	}
}

// completeHomes has the names of this user's homes.
func completeHomes(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return offerEach(
		func(c *client.Client, ctx context.Context) ([]api.KeptHome, error) { return client.Homes(ctx, c) },
		func(h api.KeptHome) string { return h.Name },
	)(cmd, args, word)
}
