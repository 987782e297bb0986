package main

import (
	"testing"
	"time"
)

func TestInterrupts(t *testing.T) {
	t.Parallel()
	type press struct {
		after  time.Duration // since the press before
		output string        // in between
		want   interruptVerdict
	}
	s, ms := time.Second, time.Millisecond
	tests := map[string]struct {
		tty     bool
		presses []press
	}{
		"without a terminal the second ends it":   {false, []press{{0, "", forCommand}, {s, "caught\n", forSandbox}}},
		"without a terminal, seconds apart":       {false, []press{{0, "", forCommand}, {3 * s, "", forCommand}, {s, "", forSandbox}}},
		"a terminal's silence is doubtful":        {true, []press{{0, "", forCommand}, {s, "", doubtful}}},
		"an echo is silence":                      {true, []press{{0, "", forCommand}, {s, "^C\r\n", doubtful}}},
		"a prompt is a reaction":                  {true, []press{{0, "", forCommand}, {s, "^C\r\n$ ", forCommand}, {s, "^C\r\n$ ", forCommand}}},
		"a reaction to the first only":            {true, []press{{0, "", forCommand}, {s, "$ ", forCommand}, {s, "", doubtful}}},
		"output before the first is none":         {true, []press{{0, "$ ", forCommand}, {s, "", doubtful}}},
		"a key held down is one press":            {true, []press{{0, "", forCommand}, {30 * ms, "", forCommand}, {30 * ms, "", forCommand}}},
		"far apart at a terminal":                 {true, []press{{0, "", forCommand}, {3 * s, "", forCommand}, {3 * s, "", forCommand}}},
		"five in a row end it whatever it prints": {true, []press{{0, "", forCommand}, {s, "y", forCommand}, {s, "y", forCommand}, {s, "y", forCommand}, {s, "y", forSandbox}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := interrupts{tty: test.tty}
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for n, p := range test.presses {
				now = now.Add(p.after)
				i.output([]byte(p.output))
				if got := i.noteInterrupt(now); got != p.want {
					t.Errorf("press %d: %v, want %v", n+1, got, p.want)
				}
			}
		})
	}
}
