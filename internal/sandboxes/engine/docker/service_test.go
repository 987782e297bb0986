package docker

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// elsewhereVariable is the socket on which a copy of the test's binary listens as a service.
const elsewhereVariable = "COFFERDAM_LISTEN_ELSEWHERE"

// TestListenElsewhere is the other side of the next test: a service in namespaces of its own.
func TestListenElsewhere(t *testing.T) {
	socket := os.Getenv(elsewhereVariable)
	if socket == "" {
		return // it is the other side of a test, and no test
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(os.Stdout, "listening\n"); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.Close() // only who listens is of interest
	}
}

// TestServiceInNamespacesOfItsOwn: Docker in a container has processes with other numbers. It
// is visited as often as one likes, on whatever thread that is.
func TestServiceInNamespacesOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root enters another's mounts")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestListenElsewhere$")
	cmd.Env = append(os.Environ(), elsewhereVariable+"="+socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // it is killed when the thread that starts it ends, and visits end theirs
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "listening\n" {
		t.Fatalf("%q, %v", line, err)
	}
	theirs, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	for visit := range 5 {
		first := ""
		err := service{socket: socket}.withinMounts(t.Context(), func() error {
			first, err = os.Readlink("/proc/1/ns/mnt") // in the service's own /proc it is process 1
			return err
		})
		if err != nil || first == "" || first == theirs {
			t.Fatalf("visit %d: in %q, and the test is in %q: %v", visit, first, theirs, err)
		}
	}
}
