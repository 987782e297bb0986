package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// leastFiles is the lowest limit of open files: the agent itself needs a
// descriptor for each listener, connection and output of a command.
const leastFiles = 1024

// setHardLimits sets the hard limits on the agent, from which every command
// inherits them: nothing can be set between fork and exec. The agent does not
// suffer: processes are counted by user, and where it is the same user as a
// command CAP_SYS_RESOURCE exempts it; its own listeners and connections are
// bounded below leastFiles. Where the engine says so, the agent keeps its own limit of
// processes, and each command gets one at its start.
func (a *Agent) setHardLimits(limits channel.ExecLimits) error {
	if limits.NoFile > 0 {
		n := uint64(max(limits.NoFile, leastFiles))
		if err := setLimit(unix.RLIMIT_NOFILE, n); err != nil {
			return fmt.Errorf("limit the open files to %d: %w", n, err)
		}
	}
	if os.Getenv(channel.LimitEach) != "" {
		a.each.Store(int64(limits.NProc))
		return nil
	}
	if limits.NProc > 0 && os.Getenv(channel.SharedUsers) == "" {
		if err := setLimit(unix.RLIMIT_NPROC, uint64(limits.NProc)); err != nil {
			return fmt.Errorf("limit the processes to %d: %w", limits.NProc, err)
		}
	}
	return nil
}

// setLimit leaves a limit alone that is right already, which needs no right, and a
// lower one that may not be raised: an agent that is an ordinary process has what
// its parent leaves it.
func setLimit(resource int, n uint64) error {
	want := unix.Rlimit{Cur: n, Max: n}
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err == nil && now == want {
		return nil
	}
	err := unix.Setrlimit(resource, &want)
	if errors.Is(err, unix.EPERM) && now.Max < n {
		return nil
	}
	return err
}

func fileOwner(info os.FileInfo) (int, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), info.Mode()&fs.ModeSymlink == 0
}
