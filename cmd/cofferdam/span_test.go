package main

import (
	"strings"
	"testing"
	"time"

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

// TestEveryTimeIsReadAlike: the flags that are read later take what the others do. A part of a second would be
// told to the daemon as 0, which is for ever.
func TestEveryTimeIsReadAlike(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	expires := func(text string) (time.Duration, error) {
		f := answerFlags{expires: text}
		err := f.checkFlags(newDeny())
		return f.lasts, err
	}
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "2w": 14 * 24 * time.Hour} {
		if d, err := expires(text); err != nil || d != want {
			t.Errorf("--expires %s: %s, %v", text, d, err)
		}
		if at, err := parseTime("since", text, now); err != nil || now.Sub(at) != want {
			t.Errorf("--since %s: %s, %v", text, at, err)
		}
	}
	for _, text := range []string{"0", "0s", "-5s", "-7d", "500ms", "1w2d", "1d12h", "2562047h", "5300w", "99999999999999999999d", "7", "d", "7D"} {
		if d, err := expires(text); err == nil {
			t.Errorf("--expires %s is taken for %s", text, d)
		}
	}
}
