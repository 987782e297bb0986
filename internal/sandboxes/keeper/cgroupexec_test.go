package keeper

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestJoining: the child is in the files before it runs, with its argv whole and no
// descriptor but three, whichever program joins. A plain file stands for a cgroup.
func TestJoining(t *testing.T) {
	for name, joiner := range joiners(t) {
		t.Run(name, func(t *testing.T) { testJoining(newStage(t, func(c *Config) { c.CgroupExec = joiner })) })
	}
}

// joiners are the shell, and the program for where there is none.
func joiners(t *testing.T) map[string][]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"/usr/bin/env", roleVar + "=cgroupexec", self}
	byShell := Joiner(own...)
	if byShell[0] != shell {
		t.Fatalf("there is a shell, and %v is to join", byShell)
	}
	return map[string][]string{"shell": byShell, "own": own}
}

func testJoining(s *stage) {
	s.t.Helper()
	procs := filepath.Join(s.dir, "cgroup $(touch x).procs")
	s.must(os.WriteFile(procs, nil, 0o600))
	log := filepath.Join(s.dir, "log")
	_, err := s.Launch(s.t.Context(), Launch{
		ID: "x", Argv: []string{"/bin/sh", "-c", `ls -l /proc/self/fd | sed 's/.* -> //' >&2; echo "[$1] [$2]" >&2; cat "$3" >&2`, "sh", "--", "a  b; exit 1", procs},
		Env: []string{"PATH=/usr/bin:/bin"}, Log: log, CgroupProcs: []string{procs, procs},
	})
	s.must(err)
	text, err := os.ReadFile(log)
	s.must(err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := strings.Join(lines[len(lines)-2:], "|"); last != "[--] [a  b; exit 1]|0" {
		s.t.Errorf("%q", text)
	}
	sockets := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "socket:") {
			sockets++
		}
		if strings.HasSuffix(l, ".sock") || strings.HasSuffix(l, ".lock") || strings.HasSuffix(l, "keeper.log") {
			s.t.Errorf("inherited %s", l)
		}
	}
	if sockets > 1 { // stdin; stdout is the pipe to sed
		s.t.Errorf("%d sockets:\n%s", sockets, text)
	}
	// Where it can't be joined nothing runs.
	_, err = s.Launch(s.t.Context(), Launch{ID: "y", Argv: []string{"/bin/touch", procs + ".ran"}, Log: log, CgroupProcs: []string{procs, filepath.Join(s.dir, "none", "tasks")}})
	if _, ran := os.Stat(procs + ".ran"); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "none/tasks") || ran == nil {
		s.t.Errorf("not joined: %v, %v", err, ran)
	}
}

// newCgroup makes one in the pids hierarchy of version 1, or in version 2.
func newCgroup() (string, error) {
	dir, err := os.MkdirTemp("/sys/fs/cgroup/pids", "keeper-test")
	if err != nil {
		dir, err = os.MkdirTemp("/sys/fs/cgroup", "keeper-test")
	}
	return dir, err
}

func TestRealCgroup(t *testing.T) {
	for name, joiner := range joiners(t) {
		dir, err := newCgroup()
		if err != nil {
			t.Logf("no cgroup can be made here, TestJoining must do: %v", err)
			return
		}
		t.Run(name, func(t *testing.T) { testRealCgroup(newStage(t, func(c *Config) { c.CgroupExec = joiner }), dir) })
	}
}

func testRealCgroup(s *stage, dir string) {
	s.t.Helper()
	defer os.Remove(dir)
	self, err := os.Executable()
	s.must(err)
	box, err := s.Launch(s.t.Context(), Launch{
		ID: "x", Argv: []string{"/usr/bin/env", roleVar + "=guest", self}, Attached: true,
		CgroupProcs: []string{filepath.Join(dir, "cgroup.procs")},
	})
	s.must(err)
	s.run("x", "c", ExecOptions{}, "echo", "in")
	s.result("x", "c")
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	s.must(err)
	if strings.TrimSpace(string(procs)) != strconv.Itoa(box.Pids[0]) {
		s.t.Errorf("the cgroup has %q, the sandbox is %d", procs, box.Pids[0])
	}
	s.must(s.Kill(s.t.Context(), "x"))
	s.must(os.Remove(dir))
}
