package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
)

// isolationFlag is what asks for an engine, by its name or by the strength of its wall. It
// was --engine once, which means the same and is in no help.
func isolationFlag(cmd *cobra.Command, name *string, usage string) {
	set := cmd.Flags()
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, flag string) pflag.NormalizedName {
		if flag == "engine" {
			flag = "isolation"
		}
		return pflag.NormalizedName(flag)
	})
	set.StringVar(name, "isolation", "", usage)
	registerCompletion(cmd, "isolation", completeIsolation)
}

// completeIsolation offers the engines of this version, and the strengths.
func completeIsolation(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	engines := slices.Sorted(maps.Keys(all.Engines(all.Config{}, nil))) // only named, never used
	return completeWords(append(engines, "auto", "hardware")...)(cmd, args, word)
}
