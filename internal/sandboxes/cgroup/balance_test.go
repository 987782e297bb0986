package cgroup

import (
	"maps"
	"testing"
	"time"
)

// beside has shares use so many processors each, for so long, and tells which are low.
func beside(b loads, now *time.Time, used map[string]int64, length time.Duration, cpus map[string]float64) map[string]bool {
	const tick = 100 * time.Millisecond
	for range length / tick {
		*now = now.Add(tick)
		for share, n := range cpus {
			used[share] += int64(n * float64(tick))
		}
		b.countUse(*now, used)
		b.lowShares()
	}
	low := b.lowShares()
	maps.DeleteFunc(low, func(_ string, is bool) bool { return !is })
	return low
}

func TestBalanceOfShares(t *testing.T) {
	const long = 10 * time.Second
	cases := []struct {
		name string
		cpus map[string]float64
		low  []string
	}{
		{"alone, nobody is low", map[string]float64{"busy": 2}, nil},
		{"a busy one beside a light one", map[string]float64{"busy": 1.6, "light": 0.2}, []string{"busy"}},
		{"a busy one beside one that does nothing", map[string]float64{"busy": 2, "light": 0}, []string{"busy"}},
		{"two busy ones are equal", map[string]float64{"one": 1.05, "two": 0.95}, nil},
		{"two that use next to nothing", map[string]float64{"one": 0.09, "two": 0.01}, nil},
		{"two busy ones beside a light one", map[string]float64{"one": 1, "two": 0.9, "light": 0.1}, []string{"one", "two"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			now, used := time.Unix(0, 0), map[string]int64{}
			for share := range c.cpus {
				used[share] = 0
			}
			low := beside(loads{}, &now, used, long, c.cpus)
			if len(low) != len(c.low) {
				t.Fatalf("low are %v, want %v", low, c.low)
			}
			for _, share := range c.low {
				if !low[share] {
					t.Errorf("%s is not low", share)
				}
			}
		})
	}
}

func TestBalanceLetsTheLowReturn(t *testing.T) {
	now, used := time.Unix(0, 0), map[string]int64{"busy": 0, "light": 0}
	b := loads{}
	if low := beside(b, &now, used, 5*time.Second, map[string]float64{"busy": 1.8, "light": 0.1}); !low["busy"] {
		t.Fatal("the busy one is not low") // control
	}
	if low := beside(b, &now, used, 5*time.Second, map[string]float64{"busy": 0.05, "light": 0.05}); len(low) != 0 {
		t.Errorf("it rests, and is low still: %v", low)
	}
	if low := beside(b, &now, used, 5*time.Second, map[string]float64{"busy": 1, "light": 1}); len(low) != 0 {
		t.Errorf("both want all, and one is low: %v", low)
	}
}

func TestBalanceRemembersWhoIsGone(t *testing.T) {
	now, used := time.Unix(0, 0), map[string]int64{"busy": 0, "light": 0}
	b := loads{}
	beside(b, &now, used, 5*time.Second, map[string]float64{"busy": 1.8, "light": 0.1})
	delete(used, "light")
	if low := beside(b, &now, used, balanceMemory/2, map[string]float64{"busy": 1.8}); !low["busy"] {
		t.Error("the light one is between two sandboxes, and the busy one is not low")
	}
	if low := beside(b, &now, used, balanceMemory, map[string]float64{"busy": 1.8}); low["busy"] {
		t.Error("the light one is gone for good, and the busy one is low")
	}
	if len(b) != 1 {
		t.Errorf("%d shares are remembered", len(b))
	}
	used["light"] = 0
	low := beside(b, &now, used, 300*time.Millisecond, map[string]float64{"busy": 1.8, "light": 0.1})
	if !low["busy"] {
		t.Error("the light one is there again, and the busy one is not low at once")
	}
	used["busy"] = 0 // its groups were made anew
	b.countUse(now.Add(100*time.Millisecond), used)
	if l := b["busy"]; l.use > 2 || l.use < 0 {
		t.Errorf("a count that began anew makes a use of %v", l.use)
	}
}

func TestHurryIsAPartOfTheTime(t *testing.T) {
	start := time.Unix(0, 0)
	now, all := start, time.Duration(0)
	one := &hurry{at: now, credit: hurryMost, count: 1}
	for range 10_000 { // 100 seconds of it
		if one.goesFirst() {
			all += 10 * time.Millisecond
		}
		now = now.Add(10 * time.Millisecond)
		one.spendCredit(now)
	}
	if most := hurryMost + time.Duration(hurryPart*float64(now.Sub(start))) + time.Second; all > most || all < hurryMost {
		t.Errorf("who hurried for %s went first for %s, want at most %s", now.Sub(start), all, most)
	}
	one.count = 0
	one.spendCredit(now.Add(time.Hour))
	if one.credit != hurryMost || one.goesFirst() {
		t.Errorf("after an hour's rest the credit is %s, and first is %v", one.credit, one.goesFirst())
	}
}
