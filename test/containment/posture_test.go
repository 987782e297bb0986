package containment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// statusOf parses the lines of a status file.
func statusOf(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(line, ":")
		if found {
			all[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	return all
}

// processes are the host processes of a sandbox: its kernel and what opens
// files for it.
func (s *stage) processes(t *testing.T, id string) []int {
	t.Helper()
	if byDocker() {
		return []int{s.container(t, id)}
	}
	known, err := keeper.Dial(filepath.Join(s.runtime(), "keeper.sock")).Get(t.Context(), id)
	if err != nil || len(known.Pids) == 0 {
		t.Fatalf("the keeper does not tell the processes of %s: %+v %v", id, known, err)
	}
	return known.Pids
}

// commandPosture is what every command's process has, whoever it is and
// whatever it tried: no capability, no way to one.
func commandPosture() map[string]string {
	none := "0000000000000000"
	return map[string]string{"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none, "NoNewPrivs": "1"}
}

// testCommandPosture: setuid programs, setresuid, capset: nothing is gained.
func testCommandPosture(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	for _, program := range []string{"/probe/probe", "/probe/setuid"} {
		for _, user := range []string{"", "root"} {
			text, exit := b.command(t, api.StartCommand{Argv: []string{program, "posture"}, User: user})
			got := statusOf(text)
			for name, want := range commandPosture() {
				if got[name] != want {
					t.Errorf("%s as %q: %s is %q, want %q (%+v)", program, user, name, got[name], want, exit)
				}
			}
			if user == "" && got["Uid"] != "1000 1000 1000 1000" {
				t.Errorf("ESCAPED: %s has the ids %s", program, got["Uid"])
			}
		}
	}
	for _, argv := range [][]string{{"su", "-c", "id -u"}, {"sudo", "-n", "id", "-u"}, {"pkexec", "id", "-u"}} {
		text, exit := b.command(t, api.StartCommand{Argv: argv})
		if argv[0] == "sudo" && exit.Code == 0 && strings.TrimSpace(text) == "1000" {
			continue // our own, which gives nothing
		}
		if exit.Code == 0 || strings.TrimSpace(text) == "0" {
			t.Errorf("ESCAPED: %v gave %q", argv, text)
		}
	}
	agentPosture(t, b)
	s.goldenPath(t, b)
	// The control runs the setuid program as an unprivileged user, from a file
	// system that permits it, as root of the stage would let it.
	dir := filepath.Join(s.dir, "setuid")
	if err := os.Mkdir(dir, 0o755); err != nil { // another user runs the program
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(dir, "setuid")
	s.write(t, "setuid/setuid", readFile(t, filepath.Join(probeDir(), "setuid")), 0o755)
	if err := os.Chmod(path, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	got := s.outside(t, func(cmd *exec.Cmd) {
		cmd.Path = path
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000}
	}, "posture")
	if status := statusOf(got.text); status["Uid"] != "0 0 0 0" || status["CapEff"] == commandPosture()["CapEff"] {
		t.Errorf("INCONCLUSIVE: outside the setuid program gains nothing either: %s", got.text)
	}
}

// agentPosture: PID 1 has what it needs to change users and files, which the commands'
// processes don't have, and nothing that any program could inherit of it.
func agentPosture(t *testing.T, b *sandbox) {
	t.Helper()
	text, _ := b.command(t, api.StartCommand{Argv: []string{"cat", "/proc/1/status"}})
	got := statusOf(text)
	for name, want := range commandPosture() {
		switch name {
		case "CapPrm", "CapEff":
			if sets, err := strconv.ParseUint(got[name], 16, 64); err != nil || sets&(1<<unix.CAP_SETUID) == 0 || sets&(1<<unix.CAP_SETPCAP|1<<unix.CAP_NET_ADMIN) != 0 {
				t.Errorf("the agent's %s is %q", name, got[name])
			}
		default:
			if got[name] != want {
				t.Errorf("the agent's %s is %q, want %q", name, got[name], want)
			}
		}
	}
}

// testHostProcesses: the host processes of a sandbox are nobody on the host, in
// a network of their own that has nothing but a loopback, under a filter.
func testHostProcesses(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	own := link(t, "/proc/self/ns/net")
	for _, pid := range s.processes(t, b.id) {
		status := statusOf(readFile(t, fmt.Sprintf("/proc/%d/status", pid)))
		if status["NoNewPrivs"] != "1" || status["Seccomp"] != "2" {
			t.Errorf("process %s %d: NoNewPrivs %s, Seccomp %s", status["Name"], pid, status["NoNewPrivs"], status["Seccomp"])
		}
		wantNobody(t, pid, status)
		if link(t, fmt.Sprintf("/proc/%d/ns/mnt", pid)) == link(t, "/proc/self/ns/mnt") {
			t.Errorf("ESCAPED: process %s %d is in the host's mnt namespace", status["Name"], pid)
		}
		if link(t, fmt.Sprintf("/proc/%d/ns/net", pid)) == own {
			t.Errorf("ESCAPED: process %s %d is in the host's network", status["Name"], pid)
		}
		for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/net/dev", pid))) {
			if name, _, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) != "lo" {
				t.Errorf("ESCAPED: process %d has the interface %s", pid, name)
			}
		}
	}
	s.goldenPath(t, b)
	t.Run("controls", func(t *testing.T) {
		weak := s.weak.open(t)
		known, err := weak.keeper.Get(t.Context(), weak.id)
		if err != nil || len(known.Pids) == 0 {
			t.Fatalf("%+v %v", known, err)
		}
		if !slices.ContainsFunc(known.Pids, func(pid int) bool { return link(t, fmt.Sprintf("/proc/%d/ns/net", pid)) == own }) {
			t.Error("INCONCLUSIVE: the weak sandbox is not in the host's network either")
		}
	})
}

// testGatewayPosture: the gateway is a user of its own without a capability or
// a way to one; its root directory is the cache; it holds no file elsewhere and
// no secret in its environment.
func testGatewayPosture(t *testing.T, s *stage) {
	t.Helper()
	version, err := s.client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := childOf(t, version.PID, "gateway")
	status := statusOf(readFile(t, fmt.Sprintf("/proc/%d/status", pid)))
	id := strconv.Itoa(config.DefaultGatewayUID)
	four := strings.Join([]string{id, id, id, id}, " ")
	for name, want := range map[string]string{"Uid": four, "Gid": four, "Groups": "", "CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1"} {
		if status[name] != want {
			t.Errorf("the gateway's %s is %q, want %q", name, status[name], want)
		}
	}
	cache := filepath.Join(s.dir, "state", "cache")
	if root := link(t, fmt.Sprintf("/proc/%d/root", pid)); root != cache {
		t.Errorf("the gateway's root directory is %s, not the cache", root)
	}
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(open) == 0 {
		t.Fatalf("the gateway's descriptors can't be read (%v)", err)
	}
	for _, path := range open {
		to, err := os.Readlink(path)
		if err != nil {
			continue // closed meanwhile
		}
		harmless := to == "/dev/null" || to == filepath.Join(s.dir, "daemon.log") || strings.HasPrefix(to, cache+"/") ||
			strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "anon_inode:")
		if !harmless {
			t.Errorf("the gateway holds %s", to)
		}
	}
	// Its connections are its dialer's, who has the host's network and nothing else of it.
	hosts := link(t, "/proc/self/ns/net")
	if link(t, fmt.Sprintf("/proc/%d/ns/net", pid)) == hosts {
		t.Error("the gateway is in the host's network")
	}
	if status["Seccomp"] != "2" {
		t.Errorf("the gateway is under no filter: Seccomp %s", status["Seccomp"])
	}
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/net/dev", pid))) {
		if name, _, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) != "lo" {
			t.Errorf("the gateway has the interface %s", name)
		}
	}
	dials := childOf(t, version.PID, "dialer")
	if link(t, fmt.Sprintf("/proc/%d/ns/net", dials)) != hosts {
		t.Error("INCONCLUSIVE: the dialer is not in the host's network either")
	}
	beside := statusOf(readFile(t, fmt.Sprintf("/proc/%d/status", dials)))
	if root := link(t, fmt.Sprintf("/proc/%d/root", dials)); beside["Uid"] != four || beside["CapEff"] != "0000000000000000" || beside["NoNewPrivs"] != "1" || root != cache {
		t.Errorf("the dialer is %v, in %s", beside, root)
	}
	if found := s.leaked(readFile(t, fmt.Sprintf("/proc/%d/environ", pid)) + readFile(t, fmt.Sprintf("/proc/%d/cmdline", pid))); len(found) > 0 {
		t.Errorf("the gateway's environment or arguments have %v", found)
	}
	// The control: by the same reading, the daemon is what the gateway is not.
	daemon := statusOf(readFile(t, fmt.Sprintf("/proc/%d/status", version.PID)))
	if daemon["Uid"] != "0 0 0 0" || daemon["CapEff"] == "0000000000000000" || link(t, fmt.Sprintf("/proc/%d/root", version.PID)) != "/" ||
		!slices.Contains(s.leaked(readFile(t, fmt.Sprintf("/proc/%d/environ", version.PID))), "the daemon's environment") {
		t.Errorf("INCONCLUSIVE: the daemon seems confined too: %v", daemon)
	}
}

// childOf finds a child of a process by its first argument.
func childOf(t *testing.T, parent int, role string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		args := strings.Split(string(text), "\x00")
		if err != nil || len(args) < 2 || args[1] != role {
			continue
		}
		dir := filepath.Dir(path)
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err == nil && statusOf(string(status))["PPid"] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("the daemon has no child %s", role)
	return 0
}

func link(t *testing.T, path string) string {
	t.Helper()
	to, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return to
}
