package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newPolicyPresets() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "presets",
		Short: "List the presets of names, and the agents that need them",
		Long: `Lists the words that a policy's network_presets can have, with the hosts of each, and
the agents of "cofferdam run --agent" with their presets and variables, and with what
they keep below their home directory.`,
		Example: `  cofferdam policy presets
  cofferdam policy presets --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := listPresets()
			if err != nil {
				return err
			}
			return writeAnswer(list, asJSON, writePresets)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writePresets(w io.Writer, list presetList) error {
	rows := [][]string{{"PRESET", "MEANS", "HOSTS", "KEY IN"}}
	for _, p := range list.Presets {
		rows = append(rows, []string{p.Name, p.Means, strings.Join(p.Hosts, ", "), orDash(p.Variable)})
	}
	lines := append(ui.Columns(rows, ui.Width(w)), "")
	rows = [][]string{{"AGENT", "MEANS", "PRESETS", "VARIABLES", "KEEPS"}}
	for _, a := range list.Agents {
		variables := slices.Sorted(maps.Keys(a.Environment))
		for _, key := range slices.Sorted(maps.Keys(a.Keys)) {
			variables = append(variables, a.Keys[key])
		}
		rows = append(rows, []string{a.Name, a.Means, strings.Join(a.Presets, ", "), orDash(strings.Join(variables, ", ")), orDash(strings.Join(a.State, ", "))})
	}
	for _, line := range append(lines, ui.Columns(rows, ui.Width(w))...) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
