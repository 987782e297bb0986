package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// stageVariable holds the agent's path in a process that is to become PID 1 of
// a sandbox for tests.
const stageVariable = "GUEST_TEST_STAGE"

// agentVariable holds what the agent has of an environment beside the canary.
const agentVariable = "GUEST_TEST_AGENT"

// leakedFD is a descriptor that the stage leaves open for the agent, as a
// careless runtime would.
const leakedFD = 9

// enterSandbox runs as PID 1 of new namespaces: it gives itself file systems of
// its own and becomes the agent.
func enterSandbox() {
	mounts := []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "/home", "tmpfs", 0, "mode=755"},
		{"tmpfs", "/opt", "tmpfs", 0, "mode=755"},
		{"tmpfs", "/media", "tmpfs", 0, "mode=777,size=1m"},
		{"overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=/run/upper,workdir=/run/lower"},
	}
	for _, m := range mounts {
		if m.kind == "overlay" {
			must(os.Mkdir("/run/upper", 0o755))
			must(os.Mkdir("/run/lower", 0o755))
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			must(fmt.Errorf("mount %s: %w", m.target, err))
		}
	}
	root, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(err)
	must(unix.Dup3(root, leakedFD, 0))
	agent := os.Getenv(stageVariable)
	must(syscall.Exec(agent, []string{agent}, append(strings.Fields(os.Getenv(agentVariable)), "HOST_CANARY=secret")))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(3)
	}
}

// sandboxed is an agent that is PID 1 of its own namespaces.
type sandboxed struct {
	*host
	process *os.Process
	binary  string
	ended   chan error
}

// buildAgent builds the real agent once, where every user can run it.
var buildAgent = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cofferdam-guest")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "cofferdam-guest")
	build := exec.Command("go", "build", "-o", path, "../../../cmd/cofferdam-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// startSandbox needs root: a sandbox has two users.
func startSandbox(t *testing.T, open func(channel.Open, *channel.Conn) channel.Reply, env ...string) *sandboxed {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test makes namespaces and users: run the tests as root")
	}
	binary, err := buildAgent()
	if err != nil {
		t.Fatal(err)
	}
	hostEnd, guestEnd, err := channel.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stage := exec.Command(self)
	stage.Env = []string{stageVariable + "=" + binary, agentVariable + "=" + strings.Join(env, " ")}
	stage.Stdin, stage.Stdout, stage.Stderr = guestEnd, guestEnd, os.Stderr
	stage.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := stage.Start(); err != nil {
		t.Fatal(err)
	}
	_ = guestEnd.Close()
	ended := make(chan error, 1)
	go func() { ended <- stage.Wait() }()
	// Cleanups run last first: newHost's closes the channel, and the agent ends by it.
	t.Cleanup(func() { <-ended })
	return &sandboxed{host: newHost(t, hostEnd, open), process: stage.Process, binary: binary, ended: ended}
}

// configured starts a sandbox whose default user is uid 1000.
func configured(t *testing.T, names []string, open func(channel.Open, *channel.Conn) channel.Reply, env ...string) *sandboxed {
	t.Helper()
	s := startSandbox(t, open, env...)
	s.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: sandboxConfigure(names)})
	return s
}

func sandboxConfigure(names []string) *channel.Configure {
	return &channel.Configure{
		Hostname: "box", CAPEM: []byte(testCA), Names: names, Seed: []byte("seed"),
		User:   channel.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		Limits: channel.ExecLimits{NProc: 200, NoFile: 2048},
		Env:    map[string]string{"GREETING": "hello"},
	}
}
