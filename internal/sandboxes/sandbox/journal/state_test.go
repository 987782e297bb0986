package journal

import (
	"testing"
	"time"
)

// TestClock: what is left of a time, over daemons and boots.
func TestClock(t *testing.T) {
	t.Parallel()
	c := Clock{Left: time.Hour, Active: time.Minute, Boot: "a", At: time.Hour}
	still := c
	still.Still = true
	for name, got := range map[string][2]time.Duration{
		"counts":         {c.LeftAt("a", time.Hour+20*time.Minute), 40 * time.Minute},
		"is over":        {c.LeftAt("a", 3*time.Hour), -time.Hour},
		"stands still":   {still.LeftAt("a", 3*time.Hour), time.Hour},
		"another boot":   {c.LeftAt("b", 3*time.Hour), time.Hour},
		"before itself":  {c.LeftAt("a", 0), time.Hour},
		"nothing passed": {c.LeftAt("a", time.Hour), time.Hour},

		"was active":                 {c.ActiveAt("a", time.Hour+20*time.Minute), 21 * time.Minute},
		"was active and stood still": {still.ActiveAt("a", 3*time.Hour), time.Minute},
		"was active before the boot": {c.ActiveAt("b", 3*time.Hour), time.Minute},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", name, got[0], got[1])
		}
	}
}

// TestMoves: every state leads to the end, nothing leads out of it, and there is one
// beginning.
func TestMoves(t *testing.T) {
	t.Parallel()
	table := allowedMoves()
	for from, to := range table {
		for _, s := range to {
			if _, known := table[s]; !known || s == "" {
				t.Errorf("%s leads to %s, which is no state", from, s)
			}
		}
	}
	if len(table[Destroyed]) > 0 || len(table[""]) != 1 {
		t.Error("there is a way out of the end, or more than one beginning")
	}
	reach := map[State]bool{Destroyed: true}
	for range table {
		for from, to := range table {
			for _, s := range to {
				reach[from] = reach[from] || reach[s]
			}
		}
	}
	if len(reach) != len(table) {
		t.Errorf("the end is reached from %d of %d states", len(reach), len(table))
	}
	for from := range table {
		if !reach[from] {
			t.Errorf("from %s no way leads to the end", from)
		}
	}
}
