package containment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
)

// layMachines has the daemon find the image that machines need, if they are tried, and
// returns what the configuration says of their kernel.
func (s *stage) layMachines(t *testing.T) (config string) {
	t.Helper()
	if !byMachine() {
		return ""
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "state"), 0o711); err != nil { // users pass through
		t.Fatal(err)
	}
	if err := os.Symlink(repository(t, ".cofferdam", "templates"), filepath.Join(s.dir, "state", "templates")); err != nil {
		t.Fatal(err)
	}
	if kernel := machineKernel(t); kernel != "" {
		return "guest_kernel: " + kernel + "\n"
	}
	return ""
}

// machineKernel is where scripts/deps puts a kernel; "" if the host's own is to be taken.
func machineKernel(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tools", "kernel"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "boot")); err != nil {
		return ""
	}
	return dir
}

// roleStage makes this program the stage of a weak machine.
const roleStage = "containment-machine"

// playStage is it.
func playStage() {
	if err := microvm.Stage(os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, roleStage+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// weakMachine is a machine as every other, but that it has a network device.
func (s *stage) weakMachine(t *testing.T) *weakSandbox {
	t.Helper()
	image, err := filepath.EvalSymlinks(repository(t, ".cofferdam", "templates", "debian", "current"))
	if err != nil {
		t.Fatal(err)
	}
	agent, err := os.ReadFile(filepath.Join(s.dir, "state", "agent", "cofferdam-guest"))
	if err != nil {
		t.Fatal(err)
	}
	h := *s.weak
	h.engine = microvm.New(microvm.Config{
		Kernel: machineKernel(t), StateDir: filepath.Join(h.dir, "state"), Agent: func() ([]byte, error) { return agent, nil },
		Stage: []string{"/proc/self/exe", roleStage}, CgroupParent: fmt.Sprintf("cofferdam-weak-machine-%d", os.Getpid()),
	}, h.keeper)
	return h.begin(t, engine.Spec{
		ID: "weak-" + randomWord(), Root: engine.Root{Kind: engine.RootImage, Path: filepath.Join(image, "rootfs.erofs")}, Hostname: "weak", Weak: true,
		Mounts: []engine.Mount{
			{Source: filepath.Join(s.dir, "state", "agent"), Destination: "/.cofferdam/bin", ReadOnly: true},
			{Source: probeDir(), Destination: "/probe", ReadOnly: true},
		},
		Init: []string{"/.cofferdam/bin/cofferdam-guest"}, Env: []string{"PATH=/usr/bin:/bin"},
		Limits: engine.Limits{MemoryBytes: 256 << 20, DiskBytes: 64 << 20, Pids: 128, CPU: 2},
		Owner:  engine.Owner{UID: 1000, GID: 1000},
	})
}

// testWeakMachine: with a network device, a machine gets out by the same program where without one
// it does not, and the same oracles see it. gVisor's weak sandbox shows what the other groups try
// without a weak machine.
func testWeakMachine(t *testing.T, s *stage) {
	t.Helper()
	if !byMachine() {
		return // there is one only where machines are tried
	}
	attempts := []attempt{
		{name: "TCP", args: []string{"tcp", publicIPv4 + ":443", "TOKEN"}},
		{name: "UDP", args: []string{"udp", publicIPv4 + ":443", "TOKEN"}},
		{name: "metadata", args: []string{"tcp", metadata4 + ":80", "TOKEN"}},
		{name: "a name server", args: []string{"dns", otherServer + ":53", "TOKEN.test", "A", "udp"}},
		{name: "an address of the host", args: []string{"tcp", stageIPv4 + ":22", "TOKEN"}},
		{name: "the host's loopback, as the monitor shows it", args: []string{"tcp", "10.0.2.2:2375", "TOKEN"}},
	}
	b := s.open(t, nil)
	s.attack(t, b, attempts, manners())
	s.goldenPath(t, b)
	weak := s.weakMachine(t)
	work := s.batch(t, attempts, func(a attempt) []string { return a.args })
	mark, requests := s.seen.mark(), len(s.registry.Requests())
	got := weak.probe(t, work.args...)
	escaped := map[string]bool{}
	for _, e := range s.escapes(t, mark, requests) {
		escaped[work.named(e)] = true
	}
	for _, a := range attempts {
		if !escaped[a.name] {
			t.Errorf("INCONCLUSIVE: %s does not get out of the weak machine either; the probe says:\n%s", a.name, got.text)
		}
	}
	if links := weak.probe(t, "information", "/nowhere"); links.code != 0 && links.text == "" {
		t.Errorf("INCONCLUSIVE: the weak machine does not live: %+v", links)
	}
	known, err := weak.keeper.Get(context.WithoutCancel(t.Context()), weak.id)
	if err != nil || len(known.Pids) == 0 {
		t.Fatalf("%+v %v", known, err)
	}
	if link(t, fmt.Sprintf("/proc/%d/ns/net", known.Pids[0])) != link(t, "/proc/self/ns/net") {
		t.Error("INCONCLUSIVE: the weak machine's monitor is not in the host's network either")
	}
}

// wantNothing: a machine's monitor is a user that nobody is, without any right and any way
// to one, and sees no process of the host.
func wantNothing(t *testing.T, pid int, status map[string]string) {
	t.Helper()
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"} {
		if strings.Trim(status[set], "0") != "" {
			t.Errorf("ESCAPED: process %s %d has the host's capabilities %s %s", status["Name"], pid, set, status[set])
		}
	}
	user, _, _ := strings.Cut(status["Uid"], " ")
	if n, err := strconv.Atoi(user); err != nil || n < 1<<30 {
		t.Errorf("process %s %d is the host's user %s", status["Name"], pid, user)
	}
	if link(t, fmt.Sprintf("/proc/%d/ns/pid", pid)) == link(t, "/proc/self/ns/pid") {
		t.Errorf("ESCAPED: process %s %d is in the host's pid namespace", status["Name"], pid)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/proc/self", pid)); err == nil {
		t.Errorf("ESCAPED: process %s %d sees processes", status["Name"], pid)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/dev/null", pid)); err != nil {
		t.Errorf("INCONCLUSIVE: its root can't be looked into: %v", err)
	}
}
