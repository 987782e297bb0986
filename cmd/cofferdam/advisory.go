package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newAdvisory() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "advisory",
		Short:   "Import and ask facts about packages: malware, vulnerabilities, look-alike names",
		GroupID: groupReview,
		Long: `Facts about packages come from files that you import; no service is asked. Malware
advisories are OSV records whose id or alias begins with MAL-. A release that one of
them is about is refused, whatever the policy says. All other OSV records are of
vulnerabilities: they are shown to whoever decides about a release, and weigh where a
policy has packages.vulnerabilities. Popularity lists say which names people mean when
they mistype; short lists come with Cofferdam.`,
		Example: `  cofferdam advisory import osv/npm/all.zip --as npm
  cofferdam advisory import --popular python top-python.txt
  cofferdam advisory status
  cofferdam advisory check node event-stream@3.3.6`,
	}
	cmd.AddCommand(newAdvisoryImport(), newAdvisoryStatus(), newAdvisoryCheck(), newAdvisoryRemove())
	return cmd
}

func newAdvisoryStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List what was imported",
		Long: `Lists what was imported, under which label and when. A list that comes with Cofferdam
counts until you import one of its ecosystem. The exit code is 1 if the database is
damaged; then every package is refused.`,
		Example: "  cofferdam advisory status\n  cofferdam advisory status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := askDaemon(cmd, (*client.Client).Advisories)
			if err != nil {
				return err
			}
			err = writeAnswer(status, asJSON, writeSources)
			if err == nil && status.Damage != "" {
				err = fault.New(fault.ErrUnavailable, "%s", status.Damage)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newAdvisoryCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check ECOSYSTEM NAME[@VERSION]",
		Short: "Tell what is known of a package",
		Long: `Says what the imported facts tell about a package. The exit code is 1 if the version
is malware (without a version: any version), 3 if the name is close to a popular one,
and 0 otherwise. Known vulnerabilities of the version are listed and change no exit
code: which of them count is the policy's to say.`,
		Example: "  cofferdam advisory check python reqeusts\n  cofferdam advisory check node @scope/name@1.2.3 --json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkPackage(cmd, args[0], args[1], asJSON)
		},
		ValidArgsFunction: completeFirst(completeWords(ecosystemNames()...)),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func checkPackage(cmd *cobra.Command, ecosystem, release string, asJSON bool) error {
	of, err := pkgref.EcosystemCalled(ecosystem)
	if err != nil {
		return err
	}
	name, version := release, ""
	for _, separator := range []string{"==", "@"} {
		if at := strings.LastIndex(release, separator); at > 0 {
			name, version = release[:at], release[at+len(separator):]
			break
		}
	}
	facts, err := askDaemon(cmd, func(c *client.Client, ctx context.Context) (api.PackageFacts, error) {
		return c.CheckPackage(ctx, string(of), name, version)
	})
	if err != nil {
		return err
	}
	err = writeAnswer(facts, asJSON, writeFacts)
	switch {
	case err != nil:
		return err
	case speaksAgainst(facts):
		return &exitError{code: exitDenied}
	case facts.Lookalike != nil:
		return &exitError{code: exitHeld}
	}
	return nil
}

func newAdvisoryRemove() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "remove LABEL...",
		Aliases: []string{"rm"},
		Short:   "Forget what was imported",
		Long: `Removes what was imported under these labels. With --all it removes everything, which
also repairs any damage. The log records who did it.`,
		Example: "  cofferdam advisory remove npm\n  cofferdam advisory remove --all",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, labels []string) error {
			if all == (len(labels) > 0) {
				return usageError(cmd, "name labels to forget, or use --all")
			}
			if all {
				return withDaemon(cmd.Context(), quickTimeout, func(ctx context.Context, c *client.Client) error { return c.RemoveAllAdvisories(ctx) })
			}
			return doEach(cmd.Context(), "removing", labels, (*client.Client).RemoveAdvisories)
		},
		ValidArgsFunction: completeLabels,
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything")
	return cmd
}

func completeLabels(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return completeFound(func(ctx context.Context, c *client.Client) []string {
		var found []string
		status, _ := c.Advisories(ctx) // none, if none can be asked
		for _, s := range status.Sources {
			if !slices.Contains(args, s.Label) {
				found = append(found, s.Label+"\t"+fmt.Sprintf("%s, %s", s.Kind, ui.Moment(s.Imported)))
			}
		}
		return found
	})(cmd, args, word)
}
