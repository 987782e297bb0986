package containment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// dockers is the engine whose containers are a Docker daemon's.
const dockers = "docker"

// byDocker tells whether the sandboxes here are a Docker daemon's containers.
func byDocker() bool { return os.Getenv(engineVariable) == dockers }

// startDocker runs a Docker daemon on the stage, if its containers are tried, and returns
// what the configuration says of it. The only runtime that it lists is runc: behind a
// stronger one the walls would be that one's.
func (s *stage) startDocker(t *testing.T) (config string) {
	t.Helper()
	if !byDocker() {
		return ""
	}
	dir := filepath.Join(s.dir, "d")
	socket := filepath.Join(dir, "s")
	settings, err := json.Marshal(map[string]any{
		"data-root": filepath.Join(dir, "data"), "exec-root": filepath.Join(dir, "exec"), "pidfile": filepath.Join(dir, "pid"),
		"hosts": []string{"unix://" + socket}, "bridge": "none", "iptables": false, "ip-forward": false, "ip-masq": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "d/config.json", string(settings), 0o600)
	s.write(t, "d/log", "", 0o600)
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/usr/sbin/dockerd", "--config-file", filepath.Join(dir, "config.json"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() { // a thread that stays, or the daemon would end with it
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%v: install the package docker.io", err)
	}
	t.Cleanup(func() { endDocker(t, cmd, dir) })
	asker := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	await(t, "the Docker daemon to answer", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://docker/_ping", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := asker.Do(r)
		return err == nil && errors.Join(answer.Body.Close()) == nil && answer.StatusCode == http.StatusOK
	})
	return fmt.Sprintf("docker: { host: %q }\n", "unix://"+socket)
}

// endDocker ends the daemon and takes away the one mount that it leaves.
func endDocker(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // however it ends
	for line := range strings.Lines(readFile(t, "/proc/self/mountinfo")) {
		if at := strings.Fields(line)[4]; strings.HasPrefix(at, dir+"/") {
			_ = unix.Unmount(at, unix.MNT_DETACH) // it may have gone with another
		}
	}
}

// container is the first process of a Docker daemon's container: what the keeper knows is
// the bridge to it, which is Cofferdam's own.
func (s *stage) container(t *testing.T, id string) int {
	t.Helper()
	var born struct{ Process process.ID }
	if err := json.Unmarshal([]byte(s.read(t, filepath.Join("state", "sandboxes", id, dockers, "born.json"))), &born); err != nil || born.Process.Pid == 0 {
		t.Fatalf("the first process of %s is not on record: %+v %v", id, born, err)
	}
	return born.Process.Pid
}

// group is the name of a sandbox's control group.
func (s *stage) group(t *testing.T, id string) string {
	t.Helper()
	if !byDocker() {
		return id
	}
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/cgroup", s.container(t, id)))) {
		if name := filepath.Base(strings.TrimSpace(line)); strings.Contains(line, "memory:") || strings.HasPrefix(line, "0::/") && len(name) == 64 {
			return name
		}
	}
	t.Fatalf("INCONCLUSIVE: the container of %s has no control group", id)
	return ""
}

// strong are capabilities with which a process that has the host's numbers for users would
// have the host.
const strong = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_MODULE | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_SYS_RAWIO | 1<<unix.CAP_SYS_BOOT | 1<<unix.CAP_SYS_TIME |
	1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_MKNOD | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_SETFCAP

// wantNobody: a sandbox's process is nobody on the host. Its capabilities are of a user
// namespace of its own, in which nobody is anybody on the host, but for the owner of mounted
// files. A Docker daemon's containers have the host's numbers instead: so theirs are few.
func wantNobody(t *testing.T, pid int, status map[string]string) {
	t.Helper()
	if byDocker() {
		for _, set := range []string{"CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"} {
			if has, err := strconv.ParseUint(status[set], 16, 64); err != nil || has&strong != 0 {
				t.Errorf("ESCAPED: process %s %d has the host's capabilities %s %s", status["Name"], pid, set, status[set])
			}
		}
		return
	}
	if byMachine() {
		wantNothing(t, pid, status)
		return
	}
	user, _, _ := strings.Cut(status["Uid"], " ")
	if n, err := strconv.Atoi(user); err != nil || n < 1<<30 {
		t.Errorf("process %s %d is the host's user %s", status["Name"], pid, user)
	}
	if link(t, fmt.Sprintf("/proc/%d/ns/user", pid)) == link(t, "/proc/self/ns/user") {
		t.Errorf("ESCAPED: process %s %d is in the host's user namespace", status["Name"], pid)
	}
}
