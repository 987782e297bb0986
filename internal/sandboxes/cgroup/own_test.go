package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// limitOf reads what a group's memory limit is, in whatever version.
func limitOf(t *testing.T, g *cgroup.Group) string {
	t.Helper()
	for _, join := range g.Joins() {
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			if data, err := os.ReadFile(filepath.Join(filepath.Dir(join), name)); err == nil {
				return strings.TrimSpace(string(data))
			}
		}
	}
	t.Fatalf("no memory limit is among %v", g.Joins())
	return ""
}

// TestAGroupThatOutlivesWhoMadeIt: a second Ensure finds it with what runs in it, and sets
// limits anew, higher and lower ones.
func TestAGroupThatOutlivesWhoMadeIt(t *testing.T) {
	h := host(t)
	var g *cgroup.Group
	var process *exec.Cmd
	for i, memory := range []int64{64 << 20, 128 << 20, 32 << 20} {
		var err error
		if g, err = h.Ensure("part", cgroup.Limits{MemoryBytes: memory, Pids: 50, Weight: 200}); err != nil {
			t.Fatal(err)
		}
		if got := limitOf(t, g); got != strconv.FormatInt(memory, 10) {
			t.Errorf("the limit is %s after %d", got, memory)
		}
		if i == 0 {
			process = exec.CommandContext(t.Context(), "sleep", "1000")
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second finds it there
				if err := g.Adopt(process.Process.Pid); err != nil {
					t.Fatal(err)
				}
			}
		}
		if pids := g.Pids(); !slices.Contains(pids, process.Process.Pid) {
			t.Errorf("%d is not in the group, which has %v", process.Process.Pid, pids)
		}
	}
	g.Leave() // something runs in it
	if _, err := h.Open("part"); err != nil {
		t.Errorf("a group in which something runs is gone: %v", err)
	}
	_ = process.Process.Kill()
	_ = process.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAdoptTakesAllThreads: this very process, a Go program, has several.
func TestAdoptTakesAllThreads(t *testing.T) {
	h := host(t)
	g, err := h.Ensure("threads", cgroup.Limits{Pids: 100})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$", "-test.count=1")
	cmd.Env = append(os.Environ(), "COFFERDAM_CGROUP_WAIT=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has its threads
		t.Fatal(err)
	}
	if err := g.Adopt(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/task/*/cgroup")
	if err != nil || len(threads) < 2 {
		t.Fatalf("INCONCLUSIVE: threads %v, %v", threads, err)
	}
	for _, thread := range threads {
		data, err := os.ReadFile(thread)
		if err != nil || !strings.Contains(string(data), g.Path()) {
			t.Errorf("%s is not in %s: %v\n%s", thread, g.Path(), err, data)
		}
	}
	_ = stdin.Close()
	_ = cmd.Wait()
	if err := g.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMain is also the program with threads, which waits for the end of its standard input.
func TestMain(m *testing.M) {
	if os.Getenv("COFFERDAM_CGROUP_WAIT") == "" {
		os.Exit(m.Run())
	}
	_, _ = os.Stdout.WriteString("x")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// TestAStagesGroup is beside its sandbox's, below the same share, has limits of its own, is
// counted apart, and is none of the sandboxes that Open finds by their ids.
func TestAStagesGroup(t *testing.T) {
	h := host(t)
	own, err := h.Create("alice", "box", cgroup.Limits{MemoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	stage, err := h.EnsureStage("box", cgroup.Limits{MemoryBytes: 16 << 20, Pids: 4})
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(stage.Path()) != filepath.Dir(own.Path()) || stage.Path() == own.Path() {
		t.Errorf("the stage's group is %s, the sandbox's %s", stage.Path(), own.Path())
	}
	if err := start(t, stage, "head -c 200000000 /dev/zero | tail").Wait(); err == nil {
		t.Error("200 MB in a 16 MiB group succeeded")
	}
	_ = start(t, stage, "for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait").Wait() // sh says that it can't fork
	met := stage.Counters()
	if met.OOMKills == 0 || met.PidsRefused == 0 {
		t.Errorf("the stage's group has met %+v", met)
	}
	if met := own.Counters(); met != (cgroup.Met{}) {
		t.Errorf("the sandbox's group has met %+v", met)
	}
	again, err := h.OpenStage("box")
	if err != nil || again.Path() != stage.Path() {
		t.Errorf("opened again it is %v, %v", again, err)
	}
	for _, g := range []*cgroup.Group{stage, own} {
		if err := g.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.OpenStage("box"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a removed one: %v", err)
	}
}
