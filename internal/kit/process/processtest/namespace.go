// Package processtest runs tests that signal broadly, or wind the counter of
// process numbers, where they can reach nothing of the host: in a pid namespace
// of their own.
package processtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideVariable names the test that a copy of the test's binary is to run.
const insideVariable = "COFFERDAM_PID_NAMESPACE"

// Inside tells whether the test runs in a pid namespace of its own. Outside it
// runs the same test there, in a copy of the binary, and makes that one's verdict
// its own; the caller then returns at once. Subtests run inside with their test.
func Inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) == t.Name() {
		if err := mountProc(); err != nil {
			t.Fatal(err)
		}
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.count=1"}
	if limit, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(limit).String())
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), insideVariable+"="+t.Name())
	cmd.SysProcAttr = attributes()
	runtime.LockOSThread() // the copy is killed when the thread that starts it ends
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" (")) {
		t.Errorf("in a pid namespace of its own: %v\n%s", err, out)
	}
	return false
}

func attributes() *syscall.SysProcAttr {
	// A process group spans namespaces, and a signal to "my group" would leave this one.
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Setsid: true, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// mountProc makes /proc that of this namespace. That the process is its first
// one is what the whole package rests on.
func mountProc() error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("process %d is not the first of a pid namespace", pid)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep the mounts apart: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// counter is what the last process was given. It is of the namespace of who
// writes it.
const counter = "/proc/sys/kernel/ns_last_pid"

// Last reads the counter.
func Last() (int, error) {
	text, err := os.ReadFile(counter)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(text)))
}

// SetLast winds the counter: the next process gets the first free number after
// last. It refuses to wind the host's.
func SetLast(last int) error {
	if os.Getenv(insideVariable) == "" {
		return errors.New("the counter of process numbers is wound in a pid namespace of its own only, see Inside")
	}
	return os.WriteFile(counter, []byte(strconv.Itoa(last)), 0o600)
}
