package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ElevatedName is the name under which the agent's program runs another one with rights.
// The host starts it so, and gives it them; who starts it inside has none to pass on.
const ElevatedName = "cofferdam-elevated"

// codeNotElevated says that the program did not run, or that it is not known what is left
// of it.
const codeNotElevated = 125

// endPause lies between two looks at what is left of an elevated program.
const endPause = time.Millisecond

// Elevated runs a program with the rights of its own bounding set, to its end and that of
// all that came of it: a pid namespace is around them, which goes with its first process,
// so that no process keeps the rights. It returns the program's exit code.
func Elevated(argv []string, stderr io.Writer) int {
	code, err := elevate(argv)
	if err != nil {
		fmt.Fprintln(stderr, ElevatedName+":", err)
	}
	return code
}

func elevate(argv []string) (int, error) {
	if len(argv) == 0 {
		return codeNotElevated, errors.New("there is no program to run")
	}
	runtime.LockOSThread() // rights are a thread's, and of what that starts
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return codeNotElevated, fmt.Errorf("forbid tracing: %w", err)
	}
	if err := bequeathNothing(); err != nil {
		return codeNotElevated, fmt.Errorf("drop what could be inherited: %w", err)
	}
	// No Pdeathsig: the child compares its parent with this one, and has none in its namespace.
	first, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Setsid: true},
	})
	if err != nil {
		return codeNotElevated, fmt.Errorf("start %.200q: %w", argv[0], err)
	}
	status, err := awaitChild(first)
	if err != nil {
		return codeNotElevated, err
	}
	// The rest of the namespace has been killed and can start nothing. The kernel does
	// not wait for it.
	for {
		left, err := elevatedProcesses()
		if err != nil {
			return codeNotElevated, err
		}
		if left == 0 {
			break
		}
		time.Sleep(endPause)
		_, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil) // its parent may be this process
	}
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// bequeathNothing empties this thread's inheritable set: what it starts has the rights of
// the bounding set.
func bequeathNothing() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return err
	}
	caps[0].Inheritable, caps[1].Inheritable = 0, 0
	return unix.Capset(&header, &caps[0])
}

func awaitChild(pid int) (unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return status, err
		}
	}
}

// elevatedProcesses counts the processes that may have rights, but for this one and PID 1,
// whose children have none: they are those with anything in the bounding set, which a
// process can't empty without a right that is not given here.
func elevatedProcesses() (int, error) {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(found) == 0 {
		return 0, errors.Join(errors.New("/proc can't be read"), err)
	}
	left := 0
	for _, dir := range found {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == 1 || pid == os.Getpid() {
			continue
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			if _, err := os.Lstat(dir); err == nil {
				left++ // it is there, and nobody knows
			}
			continue
		}
		if !unbound(string(status)) {
			left++
		}
	}
	return left, nil
}

// unbound tells whether the bounding set in a status is there and empty.
func unbound(status string) bool {
	for line := range strings.Lines(status) {
		if set, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
			return err == nil && n == 0
		}
	}
	return false
}
