package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newTemplateShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show TEMPLATE",
		Short: "Show what is in a template and where it came from",
		Long: `Shows a template's ledger: the tools that came from registries, each with its
digest and the record of it in the log, and how many packages the distribution
brought. With --json, all of them.`,
		Example: "  cofferdam template show debian\n  cofferdam template show debian --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := askFor(cmd, (*client.Client).Template, args[0])
			if err != nil {
				return err
			}
			return writeAnswer(t, asJSON, writeLedger)
		},
		ValidArgsFunction: completeTemplates,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeLedger(w io.Writer, t api.TemplateLedger) error {
	fmt.Fprintf(w, "%s  %s  %s  %s\n", ui.Printable(t.Name), ui.Size(t.Bytes), ui.Moment(t.Created), ui.Printable(t.Digest))
	if t.Outdated {
		fmt.Fprintf(w, "outdated: this version builds it from a newer recipe; cofferdam template build %s\n", ui.Printable(t.Name))
	}
	if len(t.System) == 0 {
		fmt.Fprintln(w, "It shows this machine's own programs, and has no ledger.")
		return nil
	}
	fmt.Fprintf(w, "%s of the distribution, %d that Python finds; --json lists them\n", ui.Plural(len(t.System), "package", "packages"), len(t.Python))
	if len(t.Tools) == 0 {
		return nil
	}
	return tableOf([]string{"TOOL", "VERSION", "PACKAGE", "SHA256", "RUN", "RECORD"}, func(tool api.TemplateTool) []string {
		return []string{tool.Name, tool.Version, tool.Ecosystem + " " + tool.Package, tool.SHA256, tool.Run, strconv.FormatUint(tool.Record, 10)}
	})(w, t.Tools)
}
