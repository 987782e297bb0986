package guest

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// forkExec is syscall.ForkExec of a program that may have at most so many processes of its
// user; 0: as many as the agent may. The limit is set before the program's first
// instruction: the kernel holds it there for who traces it. It takes CAP_SYS_RESOURCE, of
// the sandbox's own users. Needs reaper.mu, since it waits for the child.
func forkExec(file string, argv []string, attr *syscall.ProcAttr, processes uint64) (pid int, err error) {
	if processes == 0 {
		return syscall.ForkExec(file, argv, attr)
	}
	runtime.LockOSThread() // the thread that starts it is the one that traces it
	defer runtime.UnlockOSThread()
	held, sys := *attr, *attr.Sys
	sys.Ptrace = true
	held.Sys = &sys
	if pid, err = syscall.ForkExec(file, argv, &held); err != nil {
		return 0, err
	}
	if err := awaitHeld(pid); err != nil {
		return 0, err
	}
	err = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: processes, Max: processes}, nil)
	if err != nil {
		err = fmt.Errorf("limit its processes to %d: %w", processes, err)
		_ = unix.Kill(pid, unix.SIGKILL) // not collected yet: the number is its own
	}
	if gone := unix.PtraceDetach(pid); err == nil && gone != nil && !errors.Is(gone, unix.ESRCH) { // ESRCH: it was killed meanwhile
		err = fmt.Errorf("let it go on: %w", gone)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return pid, err
}

// awaitHeld returns when the program is held at its first instruction. Signals that arrive
// before that are passed on.
func awaitHeld(pid int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait until the program is there: %w", err)
		case !status.Stopped():
			return errors.New("the program was killed before its first instruction")
		case status.StopSignal() == unix.SIGTRAP:
			return nil
		}
		if err := unix.PtraceCont(pid, int(status.StopSignal())); err != nil && !errors.Is(err, unix.ESRCH) {
			_ = unix.Kill(pid, unix.SIGKILL) // not collected yet: the number is its own
			return fmt.Errorf("pass signal %d on: %w", status.StopSignal(), err)
		}
	}
}
