package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const nothingAllowed = "name: nothing\npackages: { default: deny }\n"

// TestNothingIsLeftBehind creates and destroys sandboxes in a loop; afterwards
// the host has what it had before: no process, mount, control group, socket,
// file or open descriptor of ours more. COFFERDAM_LONG makes it a thousand.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	rounds := 15
	if os.Getenv("COFFERDAM_LONG") != "" {
		rounds = 1000
	}
	in := start(t, "")
	cycle := func() {
		sb := in.create("debian", nothingAllowed)
		if got := in.run(sb, "true"); got.Exit.Code != 0 {
			t.Fatalf("true ended with %+v", got)
		}
		if err := in.Client.DestroySandbox(t.Context(), sb.ID); err != nil {
			t.Fatal(err)
		}
	}
	// The first makes what is made once (baselines, pooled connections).
	for range 3 {
		cycle()
	}
	before := in.traces()
	for range rounds {
		cycle()
	}
	after := in.traces()
	for what, n := range after {
		// Idle connections and runtime threads come and go.
		slack := map[string]int{"descriptors of daemon": 5, "descriptors of keeper": 5, "threads of daemon": 8, "threads of keeper": 8}[what]
		if n > before[what]+slack {
			t.Errorf("%s: %d before, %d after %d sandboxes", what, before[what], n, rounds)
		}
	}
	if before["processes"] < 2 {
		t.Fatalf("the count of processes finds neither keeper nor gateway: %v", before)
	}
}

// traces counts what an installation has on the host.
func (in *installation) traces() map[string]int {
	in.t.Helper()
	n := in.onHost(in.t)
	for pid, role := range in.family() {
		if role == "" {
			continue
		}
		n["descriptors of "+role] = entries(fmt.Sprintf("/proc/%d/fd", pid))
		n["threads of "+role] = entries(fmt.Sprintf("/proc/%d/task", pid))
	}
	return n
}

// family are the processes that know this installation's runtime directory (by
// environment or arguments) or descend from one that does, with their role.
func (in *installation) family() map[int]string {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	family := map[int]string{in.Daemon.Process.Pid: "daemon"}
	for _, dir := range procs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		switch {
		case family[pid] != "":
		case bytes.Contains(args, []byte("\x00keeper\x00")) && bytes.Contains(env, []byte(in.Runtime)):
			family[pid] = "keeper"
		case bytes.Contains(env, []byte(in.Runtime)), bytes.Contains(args, []byte(in.Runtime)), parent(dir) == in.Daemon.Process.Pid:
			family[pid] = ""
		}
	}
	return family
}

func parent(dir string) int {
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	_, rest, _ := strings.Cut(string(status), "PPid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

func entries(dir string) int {
	list, _ := os.ReadDir(dir)
	return len(list)
}

func count(t *testing.T, root string, counted func(fs.DirEntry) bool) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // others' entries come and go meanwhile
		}
		if counted(d) {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
