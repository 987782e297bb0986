package sandbox

import (
	"testing"
	"time"
)

// TestWaitsDoNotCount: time that a sandbox waits in is no time without its client, unless its
// commands run on for ever meanwhile; a client's coming begins anew.
func TestWaitsDoNotCount(t *testing.T) {
	t.Parallel()
	const step = time.Second
	type stretch struct {
		looks         int
		waits, onDisk bool
		want          time.Duration // that counts at its end
	}
	const over = int(longestWait / step)
	for name, stretches := range map[string][]stretch{
		"it runs":             {{looks: 30, want: 30 * step}},
		"it waits":            {{looks: 10, want: 10 * step}, {looks: 50, waits: true, want: 10 * step}, {looks: 20, want: 30 * step}},
		"it waits again":      {{looks: 5, waits: true}, {looks: 5, want: 5 * step}, {looks: 5, waits: true, want: 5 * step}, {looks: 5, want: 10 * step}},
		"it waits for ever":   {{looks: over, waits: true}, {looks: 30, waits: true, want: 30 * step}},
		"it is on disk":       {{looks: over + 30, waits: true, onDisk: true}, {looks: 5, want: 5 * step}},
		"it waits and sleeps": {{looks: over, waits: true}, {looks: 100, waits: true, onDisk: true}, {looks: 7, waits: true, want: 7 * step}},
	} {
		var a absence
		now, left := time.Unix(1e9, 0), time.Unix(1e9, 0)
		a.counts(now, 0, false, false)
		for i, s := range stretches {
			got := time.Duration(0)
			for range s.looks {
				now = now.Add(step)
				got = a.counts(now, now.Sub(left), s.waits, s.onDisk)
			}
			if got != s.want {
				t.Errorf("%s, %d: %s count, want %s", name, i, got, s.want)
			}
		}
		if got := a.counts(now.Add(step), 0, true, false); got != 0 {
			t.Errorf("%s: with a client %s count", name, got)
		}
		if got := a.counts(now.Add(3*step), 2*step, false, false); got != 2*step {
			t.Errorf("%s: after the client %s count", name, got)
		}
	}
}
