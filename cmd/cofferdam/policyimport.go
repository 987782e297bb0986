package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/conversion"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// imported is what `policy import --json` writes.
type imported struct {
	Source   string            `json:"source"`
	Document string            `json:"document"`
	Rules    int               `json:"rules"`
	Notes    []conversion.Note `json:"notes"`
}

// policyImportFlags are those of `policy import`.
type policyImportFlags struct {
	conversion.Options
	out, release string
	asJSON       bool
}

const policyImportHelp = `Reads a PolicyDocument of the toolkit, of version 4 or 5, in YAML or JSON, and writes a
policy that says the same of commands, code and calls of tools. A part that can't be
enforced is left out, and stderr has a line for each.

The policy refuses whatever release 5.0.0 of the toolkit would refuse, or release 4.1.0
with --release 4.1.0: that one permits what no rule matches if the document does not say
defaults.action, and reads neither dynamic conditions nor mounts. A rule that permits
and can't be said here is left out, where that is sure to permit no more. One that
refuses is made wider where that is sure to refuse no less. Else nothing is written and
the exit code is 2, unless --drop-refusals says that such rules may go.

The policy goes to standard output, or into the new file of --out.`

func newPolicyImport() *cobra.Command {
	var f policyImportFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Convert a policy document of the agent-sandbox toolkit",
		Long:  policyImportHelp,
		Example: `  cofferdam policy import governance.yaml > policy.yaml
  cofferdam policy import --out policy.yaml governance.yaml
  cofferdam policy import --release 4.1.0 governance.yaml
  cofferdam policy import --json governance.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.importPolicy(args[0])
		},
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the policy into this file, which must not be there")
	cmd.Flags().StringVar(&f.release, "release", "5.0.0", "the release of the toolkit whose verdicts to keep: 4.1.0 or 5.0.0")
	cmd.Flags().BoolVar(&f.DropRefusals, "drop-refusals", false, "leave rules out that refuse, or may, by what can't be said here")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	registerCompletion(cmd, "out", completeFiles("yaml", "yml"))
	registerCompletion(cmd, "release", completeWords("4.1.0", "5.0.0"))
	return cmd
}

func (f policyImportFlags) importPolicy(file string) error {
	switch f.release {
	case "4.1.0":
		f.Lenient = true
	case "5.0.0":
	default:
		return fault.Invalid("--release is %q; it is 4.1.0 or 5.0.0", f.release)
	}
	text, err := readDocument("policy document", file, maxPolicy)
	if err != nil {
		return err
	}
	made, err := conversion.Convert(file, text, f.Options)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writeNew(f.out, string(made.Document)); err != nil {
			return err
		}
	}
	if f.asJSON {
		return ui.WriteJSON(os.Stdout, imported{Source: file, Document: string(made.Document), Rules: made.Rules, Notes: append([]conversion.Note{}, made.Notes...)})
	}
	stderr := ui.NewStderr(os.Stderr)
	for _, n := range made.Notes {
		stderr.Say("%s:%d: %s: %s", file, n.Line, n.What, n.Says)
	}
	if f.out != "" {
		stderr.Say("wrote %s with %s; what each key does: cofferdam policy check %s", f.out, ui.Plural(made.Rules, "rule", "rules"), ui.Quoted(f.out))
		return nil
	}
	_, err = fmt.Print(string(made.Document))
	return err
}
