package keeper

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// joinByShell does what CgroupExec does, in a process of one thread that is there in a
// fifth of the time that it takes to start a binary of this size. Its arguments are
// never looked at as text of a shell.
const joinByShell = `while [ "$1" != -- ]; do echo 0 >"$1" || exit 1; shift; done; shift; exec "$@"`

// shell is what nearly every system has that sandboxes run on.
const shell = "/bin/sh"

// Joiner is the argv of the program that joins cgroups (Config.CgroupExec): the
// system's shell, and where there is none own, whose body is CgroupExec.
func Joiner(own ...string) []string {
	if unix.Access(shell, unix.X_OK) != nil {
		return own
	}
	return []string{shell, "-c", joinByShell, "sh"}
}

// CgroupExec makes this process a member of cgroups and then another program:
// args are FILE... -- PROGRAM ARG..., each FILE a cgroup.procs (or, in version
// 1, tasks) to join, PROGRAM an absolute path. It returns only with an error.
//
// It is the body of a hidden command of the binary that runs the keeper, for where
// there is no shell (Joiner): version 1 knows no way to fork into a cgroup, and a
// starter has forked before anybody could move it from outside. It must be
// called early, in a process that does nothing else.
func CgroupExec(args []string) error {
	split := slices.Index(args, "--")
	if split < 0 || split == len(args)-1 {
		return fault.Invalid("expected FILE... -- PROGRAM ARG...")
	}
	files, argv := args[:split], args[split+1:]
	// A tasks file moves one thread, so the thread that joins must be the one
	// that execs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, f := range files {
		if err := joinGroup(f); err != nil {
			return err
		}
	}
	if err := closeOnExec(); err != nil {
		return err
	}
	if err := syscall.Exec(argv[0], argv, os.Environ()); err != nil {
		return fmt.Errorf("exec %s: %w", argv[0], err)
	}
	return errors.New("exec returned")
}

// joinGroup writes "0", which is whoever writes it.
func joinGroup(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("join a cgroup: %w", err)
	}
	_, err = f.WriteString("0")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("join the cgroup of %s: %w", file, err)
	}
	return nil
}

// closeOnExec marks every descriptor but the standard three, whoever opened it.
func closeOnExec() error {
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("mark descriptors close-on-exec: %w", err)
	}
	return nil
}
