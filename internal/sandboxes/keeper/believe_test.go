package keeper

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// TestWhatAGuestSaysOfAnEnd: what can't be is not told, and what is told is marked.
func TestWhatAGuestSaysOfAnEnd(t *testing.T) {
	t.Parallel()
	hour := time.Now().Add(-time.Hour)
	long := strings.Repeat("x", 10*maxErrorText)
	for name, tt := range map[string]struct {
		command *keptCommand
		said    channel.Exit
		want    channel.Exit
	}{
		"an end":                     {&keptCommand{started: hour}, channel.Exit{Code: 143, Signal: "TERM"}, channel.Exit{Code: 143, Signal: "TERM"}},
		"a timeout":                  {&keptCommand{started: hour, timeout: time.Minute}, channel.Exit{Code: 137, Signal: "KILL", TimedOut: true}, channel.Exit{Code: 137, Signal: "KILL", TimedOut: true}},
		"a timeout that was not set": {&keptCommand{started: hour}, channel.Exit{Code: 1, TimedOut: true}, channel.Exit{Code: 1}},
		"a timeout that is not over": {&keptCommand{started: hour, timeout: 2 * time.Hour}, channel.Exit{TimedOut: true}, channel.Exit{}},
		"of a copy":                  {&keptCommand{started: hour, adopted: true}, channel.Exit{Code: 137, TimedOut: true}, channel.Exit{Code: 137, Error: "its time limit was over"}},
		"no signal":                  {&keptCommand{started: hour}, channel.Exit{Signal: "\x1b[31mALL IS WELL"}, channel.Exit{}},
		"no code":                    {&keptCommand{started: hour}, channel.Exit{Code: 1 << 40}, channel.Exit{Code: 255}},
		"less than none":             {&keptCommand{started: hour}, channel.Exit{Code: -1}, channel.Exit{Code: 255}},
		"a long text":                {&keptCommand{started: hour}, channel.Exit{Error: long}, channel.Exit{Error: text.Shorten(long, maxErrorText)}},
		"what the keeper counts":     {&keptCommand{started: hour}, channel.Exit{StdoutBytes: 9, StderrBytes: 9, Truncated: true}, channel.Exit{}},
	} {
		tt.want.Claimed = true
		if diff := cmp.Diff(tt.want, tt.command.believe(tt.said)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
