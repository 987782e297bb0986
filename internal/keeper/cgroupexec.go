package keeper

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// CgroupExec makes this process a member of cgroups and then another program:
// args are FILE... -- PROGRAM ARG..., each FILE a cgroup.procs (or, in version
// 1, tasks) to join, PROGRAM an absolute path. It returns only with an error.
//
// It is the body of a hidden command of the binary that runs the keeper
// (Config.CgroupExec): version 1 knows no way to fork into a cgroup, and a
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
		if err := join(f); err != nil {
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

// join writes "0", which is whoever writes it.
func join(file string) error {
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
