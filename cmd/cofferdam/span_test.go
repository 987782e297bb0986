package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEveryFlagTakesDays: a time is one thing on the command line, whatever takes it.
func TestEveryFlagTakesDays(t *testing.T) {
	t.Parallel()
	seen := 0
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			seen++
			for _, text := range []string{"90s", "1h30m", "7d", "2w"} {
				if err := f.Value.Set(text); err != nil {
					t.Errorf("%s --%s %s: %s", cmd.CommandPath(), f.Name, text, err)
				}
			}
			if err := f.Value.Set("soon"); err == nil || !strings.Contains(err.Error(), "such as") {
				t.Errorf("%s --%s soon: %v", cmd.CommandPath(), f.Name, err)
			}
		})
	})
	if seen < 8 {
		t.Errorf("INCONCLUSIVE: %d flags are times", seen)
	}
}
