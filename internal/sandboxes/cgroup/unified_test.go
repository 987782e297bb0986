package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// tree is a directory laid out as a version 2 hierarchy. It is not the kernel:
// what is written stays as it is, and nothing appears by itself.
type tree struct {
	root string
	cfg  cgroup.Config
}

func newTree(t *testing.T, uid int, self string, groups map[string]string) tree {
	t.Helper()
	root := filepath.Join(t.TempDir(), "cgroup")
	for group, controllers := range groups {
		write(t, filepath.Join(root, group, "cgroup.controllers"), controllers)
		write(t, filepath.Join(root, group, "cgroup.subtree_control"), "")
	}
	info := filepath.Join(t.TempDir(), "mountinfo")
	write(t, info, fmt.Sprintf("30 24 0:26 / %s rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n", root))
	own := filepath.Join(t.TempDir(), "self")
	write(t, own, "0::"+self+"\n")
	return tree{root: root, cfg: cgroup.Config{Parent: "cofferdam", MountInfo: info, Self: own, UID: uid}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func TestUnifiedLimitsAndStats(t *testing.T) {
	tr := newTree(t, 0, "/", map[string]string{"": "cpuset cpu io memory pids", "cofferdam": "cpu memory pids"})
	cgroup.New(tr.cfg)
	// The kernel would list what was switched on without the plus signs.
	write(t, filepath.Join(tr.root, "cofferdam/cgroup.subtree_control"), "cpu memory pids")
	h := cgroup.New(tr.cfg)
	if missing := h.Missing(); len(missing) > 0 {
		t.Fatalf("missing: %v", missing)
	}
	if got := read(t, filepath.Join(tr.root, "cgroup.subtree_control")); got != "+memory +cpu +pids" {
		t.Errorf("switched on at the root: %q", got)
	}
	const share = "cofferdam/9f86d081884c7d65.share" // of "test"
	write(t, filepath.Join(tr.root, share, "cgroup.controllers"), "cpu memory pids")
	write(t, filepath.Join(tr.root, share, "cgroup.subtree_control"), "")
	g, err := h.Create("test", "box", cgroup.Limits{MemoryBytes: 1 << 20, CPU: 0.25, Pids: 33})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(tr.root, share, "cgroup.subtree_control")); got != "+memory +cpu +pids" {
		t.Errorf("switched on in the share: %q", got)
	}
	dir := filepath.Join(tr.root, share, "box")
	for file, want := range map[string]string{"memory.max": "1048576", "cpu.max": "25000 100000", "pids.max": "33"} {
		if got := read(t, filepath.Join(dir, file)); got != want {
			t.Errorf("%s = %q, want %q", file, got, want)
		}
	}
	if err := g.Singly(); err != nil {
		t.Errorf("a kernel without memory.oom.group: %v", err)
	}
	write(t, filepath.Join(dir, "memory.oom.group"), "1")
	if err := g.Singly(); err != nil || read(t, filepath.Join(dir, "memory.oom.group")) != "0" {
		t.Errorf("singly: %v", err)
	}
	loop(t, filepath.Join(dir, "memory.oom.group"))
	if err := g.Singly(); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a file that can't be looked at is taken for none: %v", err)
	}
	if joins := g.Joins(); len(joins) != 1 || joins[0] != filepath.Join(dir, "cgroup.procs") {
		t.Errorf("joins: %v", joins)
	}
	write(t, filepath.Join(dir, "memory.current"), "4096\n")
	write(t, filepath.Join(dir, "pids.current"), "7\n")
	write(t, filepath.Join(dir, "cpu.stat"), "usage_usec 12\nuser_usec 10\nnr_periods 9\nnr_throttled 4\n")
	write(t, filepath.Join(dir, "memory.events"), "low 0\nhigh 0\nmax 5\noom 1\noom_kill 3\n")
	if s, err := g.Stats(); err != nil || s != (cgroup.Stats{MemoryBytes: 4096, CPUNanos: 12000, Pids: 7}) {
		t.Errorf("stats %+v, %v", s, err)
	}
	if n, err := g.OOMKills(); err != nil || n != 3 {
		t.Errorf("oom kills %d, %v", n, err)
	}
	if n, err := g.Throttled(); err != nil || n != 4 {
		t.Errorf("throttled %d, %v", n, err)
	}
}

func TestUnifiedSaysWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		uid     int
		self    string
		groups  map[string]string
		missing []cgroup.Controller
		says    string
	}{
		"an empty version 2": {groups: map[string]string{"": ""}, missing: cgroup.Controllers(), says: "does not offer"},
		"a user outside a delegated service": {
			uid: 1000, self: "/user.slice/user-1000.slice/session-1.scope",
			groups: map[string]string{"": "cpu memory pids"}, missing: cgroup.Controllers(), says: "Delegate=yes",
		},
		"a user with memory and pids only": {
			uid: 1000, self: "/user.slice/user@1000.service/app.slice/x.scope",
			groups:  map[string]string{"": "cpu memory pids", "user.slice/user@1000.service": "memory pids", "user.slice/user@1000.service/cofferdam": "memory pids"},
			missing: []cgroup.Controller{cgroup.CPU}, says: "cpu controller",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t, tc.uid, tc.self, tc.groups)
			if _, ok := tc.groups["user.slice/user@1000.service/cofferdam"]; ok {
				write(t, filepath.Join(tr.root, "user.slice/user@1000.service/cofferdam/cgroup.subtree_control"), "memory pids")
			}
			h := cgroup.New(tr.cfg)
			missing := h.Missing()
			if len(missing) != len(tc.missing) {
				t.Fatalf("missing %v, want %v", missing, tc.missing)
			}
			for _, c := range tc.missing {
				if !strings.Contains(missing[c], tc.says) {
					t.Errorf("%s: %q does not say %q", c, missing[c], tc.says)
				}
			}
			if _, err := h.Create("", "box", cgroup.Limits{CPU: 1}); err == nil {
				t.Error("a cpu limit that can't be enforced was taken")
			}
		})
	}
}

func TestNoHierarchyAtAll(t *testing.T) {
	info := filepath.Join(t.TempDir(), "mountinfo")
	write(t, info, "22 1 8:1 / / rw - ext4 /dev/x rw\n")
	for _, path := range []string{info, filepath.Join(t.TempDir(), "absent")} {
		h := cgroup.New(cgroup.Config{Parent: "cofferdam", MountInfo: path})
		if got := len(h.Missing()); got != len(cgroup.Controllers()) {
			t.Errorf("%s: %d controllers missing", path, got)
		}
	}
}

// A kernel that has no cpu.idle takes a weight.
func TestBalanceByWeightOnAnOlderKernel(t *testing.T) {
	tr := newTree(t, 0, "/", map[string]string{"": "cpu io memory pids", "cofferdam": "cpu memory pids"})
	cgroup.New(tr.cfg)
	write(t, filepath.Join(tr.root, "cofferdam/cgroup.subtree_control"), "cpu memory pids")
	h := cgroup.New(tr.cfg)
	busy, light := filepath.Join(tr.root, "cofferdam/b.share"), filepath.Join(tr.root, "cofferdam/l.share")
	for _, dir := range []string{busy, light} {
		write(t, filepath.Join(dir, "cpu.stat"), "usage_usec 0\n")
		write(t, filepath.Join(dir, "cpu.weight"), "100")
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { cgroup.NewBalance(h).Run(ctx) })
	used := 0
	until(t, "the busy share has a small weight", func() bool {
		used += 1_000_000
		replace(t, filepath.Join(busy, "cpu.stat"), fmt.Sprintf("usage_usec %d\n", used))
		return read(t, filepath.Join(busy, "cpu.weight")) == "3"
	})
	stop()
	running.Wait()
	if got := read(t, filepath.Join(light, "cpu.weight")); got != "100" {
		t.Errorf("the light share has the weight %s", got)
	}
}

// replace writes a file that others read meanwhile.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// loop puts a link to itself in a file's place, at which not even root can look.
func loop(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)); err != nil {
		t.Fatal(err)
	}
}

// TestALimitBelowWhatIsUsed: version 2 would end the processes of a group that is given less
// than it has, so that it is not given that; the control has no more than it may.
func TestALimitBelowWhatIsUsed(t *testing.T) {
	for used, want := range map[string]string{"3000000": "4000000", "1000000": "2000000"} {
		tr := newTree(t, 0, "/", map[string]string{"": "cpu memory pids", "cofferdam": "cpu memory pids", "cofferdam/part": "cpu memory pids"})
		write(t, filepath.Join(tr.root, "cofferdam/cgroup.subtree_control"), "cpu memory pids")
		for _, file := range []string{"memory.max", "cpu.weight", "pids.max"} {
			write(t, filepath.Join(tr.root, "cofferdam/part", file), "")
		}
		h := cgroup.New(tr.cfg)
		if _, err := h.Ensure("part", cgroup.Limits{MemoryBytes: 4_000_000}); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(tr.root, "cofferdam/part")
		write(t, filepath.Join(dir, "memory.current"), used+"\n")
		_, err := h.Ensure("part", cgroup.Limits{MemoryBytes: 2_000_000})
		if got := read(t, filepath.Join(dir, "memory.max")); got != want || (err == nil) != (want == "2000000") {
			t.Errorf("with %s in use the limit is %s: %v", used, got, err)
		}
		if high := filepath.Join(dir, "memory.high"); err != nil && read(t, high) != "max" {
			t.Errorf("with %s in use it is slowed from %s on", used, read(t, high))
		}
	}
}
