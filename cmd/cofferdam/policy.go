package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newPolicy() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Begin, check, explain, extend and name policy documents",
		GroupID: groupReview,
		Example: `  cofferdam policy init
  cofferdam policy check policy.yaml
  cofferdam policy put data policy.yaml
  cofferdam policy explain policy.yaml python requests==2.31.0
  cofferdam policy suggest --run nightly-42`,
	}
	cmd.AddCommand(newPolicyInit(), newPolicyImport(), newPolicyCheck(), newPolicyExplain(), newPolicySuggest(), newPolicySchema(), newPolicyPresets())
	cmd.AddCommand(newPolicyPut(), newPolicyList(), newPolicyShow(), newPolicyRemove())
	return cmd
}

// checked is what `policy check --json` writes.
type checked struct {
	Source string       `json:"source"`
	Digest string       `json:"digest"`
	Name   string       `json:"name,omitempty"`
	Keys   []checkedKey `json:"keys"`
}

type checkedKey struct {
	Line     int    `json:"line"` // 0: the document lacks the key
	Column   int    `json:"column"`
	Key      string `json:"key"`
	Meaning  string `json:"meaning"`
	Enforced bool   `json:"enforced"`
}

func newPolicyCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what each key of a policy document does",
		Long: `Reads a policy document strictly and says, key by key, what it does, and what an
absent key means. A "!" marks what this version does not enforce: it stays closed, unless the line says more.
Errors in a document have file:line:column, and the exit code is 2; with --json they
are on stdout.`,
		Example: "  cofferdam policy check policy.yaml\n  cofferdam policy check --json policy.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, p, err := loadPolicy(args[0])
			if wrong, ok := errors.AsType[policy.Problems](err); ok && asJSON {
				return writeProblems(args[0], wrong)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return ui.WriteJSON(os.Stdout, checkedPolicy(p))
			}
			return writeCheck(p)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// refused is what `policy check --json` writes about a wrong document.
type refused struct {
	Source   string    `json:"source"`
	Problems []problem `json:"problems"`
}

type problem struct {
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Sentence string `json:"sentence"`
}

func writeProblems(source string, wrong policy.Problems) error {
	r := refused{Source: source}
	for _, p := range wrong {
		r.Problems = append(r.Problems, problem{p.Line, p.Column, p.Sentence})
	}
	if err := ui.WriteJSON(os.Stdout, r); err != nil {
		return err
	}
	return &exitError{code: exitUsage}
}

func checkedPolicy(p *policy.Policy) checked {
	c := checked{Source: p.Source(), Digest: p.Digest(), Name: p.Name(), Keys: []checkedKey{}}
	for _, e := range p.Check() {
		c.Keys = append(c.Keys, checkedKey(e))
	}
	return c
}

func writeCheck(p *policy.Policy) error {
	closed := false
	rows := [][]string{}
	for _, e := range p.Check() {
		mark, line := " ", "-"
		if !e.Enforced {
			mark = "!"
			closed = true
		}
		if e.Line > 0 {
			line = strconv.Itoa(e.Line)
		}
		rows = append(rows, []string{mark + " " + line, e.Key, e.Meaning})
	}
	if _, err := fmt.Printf("%s is a valid policy (%s)\n", ui.Printable(p.Source()), p.Digest()); err != nil {
		return err
	}
	if err := ui.WriteTable(os.Stdout, rows); err != nil {
		return err
	}
	if closed {
		_, err := fmt.Println("! marks what this version does not enforce: what it asks for stays closed, unless the line says more")
		return err
	}
	return nil
}
