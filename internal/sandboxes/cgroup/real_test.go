package cgroup_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// host is the running host's hierarchy under a parent of the test's own.
func host(t *testing.T) *cgroup.Hierarchy {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests make control groups on the host: run them as root")
	}
	parent := "cofferdam-test-" + strconv.Itoa(os.Getpid())
	h := cgroup.New(cgroup.Config{Parent: parent})
	if missing := h.Missing(); len(missing) > 0 {
		t.Fatalf("this host can't limit: %v", missing)
	}
	t.Cleanup(func() {
		for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} { // version 1, version 2
			left, err := filepath.Glob(pattern + parent)
			if err != nil || len(left) > 0 {
				t.Errorf("the parent groups are left: %v (%v)", left, err)
			}
		}
	})
	return h
}

// start runs a shell in the group: it waits for a line on its stdin, so that
// it is in the group before it does anything.
func start(t *testing.T, g *cgroup.Group, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read _; "+script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, join := range g.Joins() {
		if err := os.WriteFile(join, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stdin.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestKillEmptiesAndRemoveLeavesNothing(t *testing.T) {
	h := host(t)
	g, err := h.Create("", "one", cgroup.Limits{MemoryBytes: 64 << 20, CPU: 0.5, Pids: 20})
	if err != nil {
		t.Fatal(err)
	}
	cmd := start(t, g, "sleep 1000 & sleep 1000 & echo; wait")
	reaped := make(chan error, 1)
	go func() { reaped <- cmd.Wait() }()
	if pids := g.Pids(); len(pids) == 0 {
		t.Fatal("the process is not in the group")
	}
	for { // The kernel counts memory in batches.
		stats, err := g.Stats()
		if err != nil || t.Context().Err() != nil {
			t.Fatalf("stats %+v, %v", stats, err)
		}
		if stats.Pids > 0 && stats.MemoryBytes > 0 && stats.CPUNanos > 0 {
			break
		}
	}
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-reaped
	for range 2 { // The second finds nothing to do.
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Open("one"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("open of a removed group: %v", err)
	}
	for _, join := range g.Joins() {
		if _, err := os.Stat(filepath.Dir(join)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", filepath.Dir(join), err)
		}
	}
}

func TestMemoryLimitKillsAndIsCounted(t *testing.T) {
	h := host(t)
	g, err := h.Create("", "oom", cgroup.Limits{MemoryBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	cmd := start(t, g, "head -c 200000000 /dev/zero | tail")
	if err := cmd.Wait(); err == nil {
		t.Error("200 MB in a 16 MiB group succeeded")
	}
	kills, err := g.OOMKills()
	if err != nil || kills == 0 {
		t.Errorf("OOMKills = %d, %v; want at least one", kills, err)
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPidsLimitRefusesAFork(t *testing.T) {
	h := host(t)
	g, err := h.Create("", "pids", cgroup.Limits{Pids: 4})
	if err != nil {
		t.Fatal(err)
	}
	cmd := start(t, g, "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo survived >&2")
	if err := cmd.Wait(); err == nil {
		t.Error("eight children in a group of four succeeded")
	}
	if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func TestParentsComeAndGoBesideEachOther(t *testing.T) {
	h := host(t)
	var all sync.WaitGroup
	for lane := range 4 {
		all.Go(func() {
			for range 50 {
				g, err := h.Create(strconv.Itoa(lane%2), "lane-"+strconv.Itoa(lane), cgroup.Limits{MemoryBytes: 1 << 20, CPU: 1, Pids: 5})
				if err != nil {
					t.Error(err)
					return
				}
				if err := g.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestCreateTwiceIsAConflictAndKeepsTheFirst(t *testing.T) {
	h := host(t)
	g, err := h.Create("", "twice", cgroup.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Create("", "twice", cgroup.Limits{}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("second create: %v", err)
	}
	if _, err := h.Open("twice"); err != nil {
		t.Errorf("the first is gone: %v", err)
	}
	if err := g.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestARefusedLimitLeavesNothing(t *testing.T) {
	h := host(t)
	if _, err := h.Create("", "bad", cgroup.Limits{Pids: 1 << 40}); err == nil {
		t.Fatal("a pids limit beyond the kernel's was taken")
	}
	if _, err := h.Open("bad"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("something of it is left: %v", err)
	}
}

func TestCPULimitIsWritten(t *testing.T) {
	h := host(t)
	g, err := h.Create("", "cpu", cgroup.Limits{CPU: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, join := range g.Joins() {
		for name, want := range map[string]string{"cpu.cfs_quota_us": "150000", "cpu.max": "150000 100000"} {
			f, err := os.Open(filepath.Join(filepath.Dir(join), name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			line, err := bufio.NewReader(f).ReadString('\n')
			if got := strings.TrimSpace(line); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
			return
		}
	}
	t.Error("no file holds the cpu limit")
}

// TestSharesDivideTheProcessors: one busy process in a share gets what three in
// another get together. All are bound to one processor, so that they want more than
// there is; the control is the same four without shares of their own.
func TestSharesDivideTheProcessors(t *testing.T) {
	h := host(t)
	used := func(t *testing.T, shares ...string) (alone, others int64) {
		t.Helper()
		groups := make([]*cgroup.Group, 0, len(shares))
		for i, share := range shares {
			g, err := h.Create(share, "box-"+strconv.Itoa(i), cgroup.Limits{Pids: 20})
			if err != nil {
				t.Fatal(err)
			}
			cmd := start(t, g, "exec taskset -c 0 sh -c 'while :; do :; done'")
			defer func() {
				if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			go func() { _ = cmd.Wait() }() // it is killed
			groups = append(groups, g)
		}
		sum := func() (first, rest int64) {
			for i, g := range groups {
				stats, err := g.Stats()
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = stats.CPUNanos
				} else {
					rest += stats.CPUNanos
				}
			}
			return first, rest
		}
		was, were := int64(0), int64(0)
		until(t, "all of them run", func() bool {
			was, were = sum()
			return was > 5e7 && were > 15e7
		})
		until(t, "they have had a second", func() bool {
			alone, others = sum()
			alone, others = alone-was, others-were
			return alone+others > 1e9
		})
		return alone, others
	}
	alone, others := used(t, "a", "b", "b", "b")
	if ratio := float64(alone) / float64(others); ratio < 0.6 || ratio > 1.6 {
		t.Errorf("one in a share had %.2f of what three in another had; want the same", ratio)
	}
	alone, others = used(t, "a", "a", "a", "a")
	if ratio := float64(alone) / float64(others); ratio > 0.55 {
		t.Errorf("INCONCLUSIVE: without shares one had %.2f of what three had; want a third", ratio)
	}
}

// until waits for a condition; a minute without it is a failure.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	over, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !is() {
		if over.Err() != nil {
			t.Fatalf("in a minute it never was so: %s", what)
		}
		time.Sleep(time.Millisecond) // between two looks: the processors are what is divided here
	}
}

// balanced are two shares with a group each, and a Balance that runs. idle is what the
// kernel says of a share.
func balanced(t *testing.T) (b *cgroup.Balance, groups map[string]*cgroup.Group, idle func(share string) string) {
	t.Helper()
	h := host(t)
	groups = map[string]*cgroup.Group{}
	for _, share := range []string{"one", "two"} {
		g, err := h.Create(share, share+"-group", cgroup.Limits{CPU: 2})
		if err != nil {
			t.Fatal(err)
		}
		groups[share] = g
	}
	b = cgroup.NewBalance(h)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		for _, g := range groups {
			if err := errors.Join(g.Kill(context.Background()), g.Remove(context.Background())); err != nil {
				t.Error(err)
			}
		}
	})
	return b, groups, func(share string) string {
		for _, join := range groups[share].Joins() {
			if data, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(join)), "cpu.idle")); err == nil {
				return strings.TrimSpace(string(data))
			}
		}
		t.Fatal("this kernel has no cpu.idle (Linux 5.15)")
		return ""
	}
}

// A share whose process is busy is put behind one that rests, and beside it again when
// it rests too: what the kernel says of the groups is what counts.
func TestBalancePutsTheBusyBehindTheLight(t *testing.T) {
	_, groups, idle := balanced(t)
	busy := start(t, groups["one"], "while :; do :; done & while :; do :; done")
	until(t, "the busy share is low", func() bool { return idle("one") == "1" })
	if got := idle("two"); got != "0" {
		t.Errorf("the light share has cpu.idle %s", got)
	}
	reaped := make(chan error, 1)
	go func() { reaped <- busy.Wait() }()
	if err := groups["one"].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-reaped
	until(t, "who rests is beside the other again", func() bool { return idle("one") == "0" })
}

// A group that hurries goes before all that don't, and only meanwhile.
func TestHurryPutsTheOthersBehind(t *testing.T) {
	b, _, idle := balanced(t)
	if idle("one") != "0" || idle("two") != "0" {
		t.Fatal("one of two that rest is low") // control
	}
	done := b.Hurry("one")
	until(t, "the other is low", func() bool { return idle("two") == "1" })
	if got := idle("one"); got != "0" {
		t.Errorf("the one that hurries has cpu.idle %s", got)
	}
	both := b.Hurry("two")
	until(t, "both hurry, and none is low", func() bool { return idle("one") == "0" && idle("two") == "0" })
	both()
	until(t, "the other is low again", func() bool { return idle("two") == "1" })
	done()
	done() // no more than once
	until(t, "nobody hurries, and none is low", func() bool { return idle("one") == "0" && idle("two") == "0" })
}

// Of one owner's sandboxes the busy one is put behind the one that rests.
func TestBalanceWithinARealShare(t *testing.T) {
	h := host(t)
	groups := map[string]*cgroup.Group{}
	for _, name := range []string{"busy", "rests"} {
		g, err := h.Create("one", name, cgroup.Limits{CPU: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(g.Kill(context.Background()), g.Remove(context.Background())); err != nil {
				t.Error(err)
			}
		})
		groups[name] = g
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { cgroup.NewBalance(h).Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	idle := func(name string) string {
		for _, join := range groups[name].Joins() {
			if data, err := os.ReadFile(filepath.Join(filepath.Dir(join), "cpu.idle")); err == nil {
				return strings.TrimSpace(string(data))
			}
		}
		t.Fatal("this kernel has no cpu.idle (Linux 5.15)")
		return ""
	}
	cmd := start(t, groups["busy"], "while :; do :; done & while :; do :; done")
	go func() { _ = cmd.Wait() }() // it is killed
	until(t, "the busy sandbox is low", func() bool { return idle("busy") == "1" })
	if got := idle("rests"); got != "0" {
		t.Errorf("the sandbox that rests has cpu.idle %s", got)
	}
}
