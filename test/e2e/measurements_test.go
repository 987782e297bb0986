package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// sample is what one process has at one time.
type sample struct {
	at          time.Duration
	resident    float64 // bytes of its own memory
	mapped      float64 // bytes of files that it maps, its program above all: the kernel may drop them
	descriptors float64
	held        float64 // bytes that the daemon can't let go of; 0: of the others it is not known
}

// measurements are what the processes of an installation had over a time, by role.
type measurements struct{ samples map[string][]sample }

// watch looks at daemon, keeper and gateway until the time is over. The three must be
// the same processes all the time.
func (in *installation) watch(over context.Context, t *testing.T, every time.Duration) measurements {
	t.Helper()
	v, began, roles := measurements{samples: map[string][]sample{}}, time.Now(), in.roles(t)
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
		held := float64(in.held(t))
		for role, pid := range roles {
			v.samples[role] = append(v.samples[role], sample{
				at: time.Since(began), resident: float64(resident(t, pid, "RssAnon:")), mapped: float64(resident(t, pid, "RssFile:")),
				descriptors: float64(entries(fmt.Sprintf("/proc/%d/fd", pid))),
			})
			if role == "daemon" {
				v.samples[role][len(v.samples[role])-1].held = held
			}
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

// resident is how much of a kind of memory a process has, in bytes.
func resident(t *testing.T, pid int, kind string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte(kind))
	var kib int64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		t.Errorf("the process %d does not tell its memory: %v", pid, err)
	}
	return kib << 10
}

// held is how many bytes the daemon's heap has after a collection of garbage, as it
// says itself.
func (in *installation) held(t *testing.T) int64 {
	t.Helper()
	admin := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", in.paths().AdminSocket())
	}}}
	resp, err := admin.Get("http://daemon/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	_, rest, _ := bytes.Cut(text, []byte("# HeapAlloc = "))
	var n int64
	if _, serr := fmt.Sscan(string(rest), &n); err != nil || serr != nil {
		t.Errorf("the daemon does not tell its heap: %v, %v", err, serr)
	}
	return n
}

// How much may grow after the first third: what the daemon's heap holds, and what
// the kernel counts.
const (
	mayGrow            = 0.20
	mayGrowHeld        = 4 << 20
	mayGrowBytes       = 8 << 20
	mayGrowDescriptors = 20
)

// judge draws a line through what came after the first third.
func (v measurements) judge(t *testing.T) {
	t.Helper()
	for role, samples := range v.samples {
		late := samples[len(samples)/3:]
		for i := 0; i < len(samples); i += 1 + len(samples)/30 {
			t.Logf("%s, sample %d: %d MiB, heap %d KiB, %d descriptors", role, i, int64(samples[i].resident)>>20, int64(samples[i].held)>>10, int(samples[i].descriptors))
		}
		if len(late) < 10 {
			t.Fatalf("there are %d samples of the %s", len(samples), role)
		}
		first, growth := trend(late, func(s sample) float64 { return s.resident })
		t.Logf("%s: %.1f MiB, and %+.1f MiB from the first third to the end", role, first/(1<<20), growth/(1<<20))
		if growth > max(mayGrow*first, mayGrowBytes) {
			t.Errorf("the memory of the %s grows", role)
		}
		mapped, more := trend(late, func(s sample) float64 { return s.mapped })
		t.Logf("%s: of files %.1f MiB, and %+.1f MiB", role, mapped/(1<<20), more/(1<<20))
		if first, growth = trend(late, func(s sample) float64 { return s.held }); first > 0 {
			t.Logf("%s: its heap holds %.1f MiB, and %+.1f MiB", role, first/(1<<20), growth/(1<<20))
		}
		if growth > max(mayGrow*first, mayGrowHeld) {
			t.Errorf("what the heap of the %s holds grows", role)
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
