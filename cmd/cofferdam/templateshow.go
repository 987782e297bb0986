package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
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
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			t, err := c.Template(ctx, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(os.Stdout, t)
			}
			return writeLedger(t)
		},
		ValidArgsFunction: completeTemplates,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeLedger(t api.TemplateLedger) error {
	fmt.Printf("%s  %s  %s  %s\n", printable(t.Name), bytesText(t.Bytes), day(t.Created), printable(t.Digest))
	if t.Outdated {
		fmt.Printf("outdated: this version builds it from a newer recipe; cofferdam template build %s\n", printable(t.Name))
	}
	if len(t.System) == 0 {
		fmt.Println("It shows this machine's own programs, and has no ledger.")
		return nil
	}
	fmt.Printf("%d packages of the distribution, %d that Python finds; --json lists them\n", len(t.System), len(t.Python))
	if len(t.Tools) == 0 {
		return nil
	}
	rows := [][]string{{"TOOL", "VERSION", "PACKAGE", "SHA256", "RUN", "RECORD"}}
	for _, tool := range t.Tools {
		rows = append(rows, []string{tool.Name, tool.Version, tool.Ecosystem + " " + tool.Package, tool.SHA256, tool.Run, strconv.FormatUint(tool.Record, 10)})
	}
	return writeTable(os.Stdout, rows)
}
