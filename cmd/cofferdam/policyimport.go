package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/policy/conversion"
	"github.com/cofferdam-dev/cofferdam/internal/ui"
)

// imported is what `policy import --json` writes.
type imported struct {
	Source   string            `json:"source"`
	Document string            `json:"document"`
	Rules    int               `json:"rules"`
	Notes    []conversion.Note `json:"notes"`
}

func newPolicyImport() *cobra.Command {
	var opts conversion.Options
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Convert a policy document of the agent-sandbox toolkit",
		Long: `Reads a PolicyDocument of the toolkit, of version 4 or 5, in YAML or JSON, and writes a
policy that says the same of commands, code and calls of tools. What can't be enforced
is left out, and stderr has a line for each such part.

The policy refuses whatever release 5.0.0 of the toolkit would refuse. A rule that
permits and can't be said here is left out, where that is sure to permit no more. One
that refuses is made wider where that is sure to refuse no less. Else nothing is
written and the exit code is 2, unless --drop-refusals says that such rules may go.

The policy goes to standard output, or into the new file of --out.`,
		Example: `  cofferdam policy import governance.yaml > policy.yaml
  cofferdam policy import --out policy.yaml governance.yaml
  cofferdam policy import --json governance.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return importPolicy(args[0], out, asJSON, opts)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write the policy into this file, which must not be there")
	cmd.Flags().BoolVar(&opts.DropRefusals, "drop-refusals", false, "leave rules out that refuse, or may, by what can't be said here")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	register(cmd, "out", files("yaml", "yml"))
	return cmd
}

func importPolicy(file, out string, asJSON bool, opts conversion.Options) error {
	text, err := readDocument("policy document", file, maxPolicy)
	if err != nil {
		return err
	}
	made, err := conversion.Convert(file, text, opts)
	if err != nil {
		return err
	}
	if out != "" {
		if err := writeNew(out, string(made.Document)); err != nil {
			return err
		}
	}
	if asJSON {
		return ui.WriteJSON(os.Stdout, imported{Source: file, Document: string(made.Document), Rules: made.Rules, Notes: append([]conversion.Note{}, made.Notes...)})
	}
	stderr := ui.NewStderr(os.Stderr)
	for _, n := range made.Notes {
		stderr.Say("%s:%d: %s: %s", file, n.Line, n.What, n.Says)
	}
	if out != "" {
		stderr.Say("wrote %s with %d rules; what each key does: cofferdam policy check %s", out, made.Rules, ui.Quoted(out))
		return nil
	}
	_, err = fmt.Print(string(made.Document))
	return err
}
