package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"
)

// sample is what one process has at one time.
type sample struct {
	at          time.Duration
	resident    float64 // bytes
	descriptors float64
}

// vigil is what the processes of an installation had over a time, by role.
type vigil struct{ samples map[string][]sample }

// watch looks at daemon, keeper and gateway until the time is over. The three must be
// the same processes all the time.
func (in *installation) watch(over context.Context, t *testing.T, every time.Duration) vigil {
	t.Helper()
	v, began, roles := vigil{samples: map[string][]sample{}}, time.Now(), in.roles(t)
	tick := time.NewTicker(max(every, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-over.Done():
			if now := in.roles(t); !maps.Equal(now, roles) {
				t.Errorf("the processes were %v, and are %v", roles, now)
			}
			return v
		case <-tick.C:
		}
		for role, pid := range roles {
			v.samples[role] = append(v.samples[role], sample{
				at: time.Since(began), resident: float64(resident(t, pid)), descriptors: float64(entries(fmt.Sprintf("/proc/%d/fd", pid))),
			})
		}
	}
}

// roles are the processes of the three roles. A child of one is none of them, though
// it may look like it before it has become what it will be.
func (in *installation) roles(t *testing.T) map[string]int {
	t.Helper()
	found, family := map[string]int{}, in.family()
	for pid, role := range family {
		dir := fmt.Sprintf("/proc/%d", pid)
		from := parent(dir)
		if args, _ := os.ReadFile(dir + "/cmdline"); role == "" && from == in.Daemon.Process.Pid && bytes.Contains(args, []byte("\x00gateway\x00")) {
			role = "gateway"
		}
		if role != "" && (role != "keeper" || family[from] != "keeper") {
			found[role] = pid
		}
	}
	if len(found) != 3 {
		t.Errorf("the roles are %v", found)
	}
	return found
}

func resident(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	var kib int64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		t.Errorf("the process %d does not tell its memory: %v", pid, err)
	}
	return kib << 10
}

// How much may grow after the first third. The few MiB are for processes so small that
// a collection of garbage is a fifth of them.
const (
	mayGrow            = 0.20
	mayGrowBytes       = 8 << 20
	mayGrowDescriptors = 20
)

// judge draws a line through what came after the first third.
func (v vigil) judge(t *testing.T) {
	t.Helper()
	for role, samples := range v.samples {
		late := samples[len(samples)/3:]
		if len(late) < 10 {
			t.Fatalf("there are %d samples of the %s", len(samples), role)
		}
		first, growth := trend(late, func(s sample) float64 { return s.resident })
		t.Logf("%s: %.1f MiB, and %+.1f MiB from the first third to the end", role, first/(1<<20), growth/(1<<20))
		if growth > max(mayGrow*first, mayGrowBytes) {
			t.Errorf("the memory of the %s grows", role)
		}
		first, growth = trend(late, func(s sample) float64 { return s.descriptors })
		t.Logf("%s: %.0f descriptors, and %+.1f", role, first, growth)
		if growth > mayGrowDescriptors {
			t.Errorf("the descriptors of the %s grow", role)
		}
	}
}

// trend is the line of least squares: where it begins, and how far it rises.
func trend(samples []sample, of func(sample) float64) (first, growth float64) {
	n, start := float64(len(samples)), samples[0].at
	var sumX, sumY, sumXX, sumXY float64
	for _, s := range samples {
		x, y := (s.at - start).Seconds(), of(s)
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	return (sumY - slope*sumX) / n, slope * (samples[len(samples)-1].at - start).Seconds()
}

// TestTrend: a line is found, and what swings about one level is none.
func TestTrend(t *testing.T) {
	var rising, swinging []sample
	for i := range 60 {
		at := time.Duration(i+7) * time.Second
		rising = append(rising, sample{at: at, resident: 100 + 2*float64(i)})
		swinging = append(swinging, sample{at: at, resident: 100 + 10*float64(i%2)})
	}
	of := func(s sample) float64 { return s.resident }
	if first, growth := trend(rising, of); first < 99.9 || first > 100.1 || growth < 117.9 || growth > 118.1 {
		t.Errorf("a line from 100 by 118 is one from %v by %v", first, growth)
	}
	if first, growth := trend(swinging, of); first < 100 || first > 110 || growth > 1 || growth < -1 {
		t.Errorf("what swings about 105 begins at %v and grows by %v", first, growth)
	}
}
