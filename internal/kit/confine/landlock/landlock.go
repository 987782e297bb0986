// Package landlock has a process give up the files of its host for good, but for those that
// it names: the kernel's Landlock, for all threads and all that they start.
//
// What goes with it, as far as the kernel can: changes of files by ioctl, signals to
// others, abstract sockets of others, TCP. The process's open files stay open. Whether a
// path exists, and whose it is, can still be asked; and modes and owners can be changed,
// which package seccomp takes away.
package landlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ErrMissing says that this kernel has no Landlock that is enough, or that it is off.
var ErrMissing = errors.New("this kernel can't keep a process from its user's files (CONFIG_SECURITY_LANDLOCK, since Linux 5.19, and in the list of lsm=)")

// least is the version of Landlock that lets files move between folders, which those of
// the first can't.
const least = 2

const (
	reads  = ll.AccessFSReadFile
	lists  = ll.AccessFSReadDir
	writes = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSMakeReg | ll.AccessFSMakeDir |
		ll.AccessFSRemoveFile | ll.AccessFSRemoveDir | ll.AccessFSRefer
)

// Reach is what a process keeps. Nothing in it is executed, and no device or socket made.
type Reach struct {
	Own  []string // folders; what is in them is read, written, made, moved and removed
	Read []string // folders and files to read; what is missing is left out
	// Connects: it keeps TCP.
	Connects bool
}

// Available is nil if this kernel can do it, and ErrMissing if it can't.
func Available() error {
	version, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPERM): // the last: a container's own filter
		return ErrMissing
	case err != nil:
		return fmt.Errorf("ask the kernel for Landlock: %w", err)
	case version < least:
		return ErrMissing
	}
	return nil
}

// Enter gives up what is not in reach. The process has no_new_privs then. ErrMissing where
// the kernel can't: nothing was given up.
func Enter(reach Reach) error {
	if err := Available(); err != nil {
		return err
	}
	all := landlock.V11
	if reach.Connects {
		all.HandledAccessNet = 0
	}
	rules := make([]landlock.Rule, 0, len(reach.Read)+1)
	rules = append(rules, landlock.PathAccess(reads|lists|writes, reach.Own...))
	for _, path := range reach.Read {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("keep a file: %w", err)
		case info.IsDir():
			rules = append(rules, landlock.PathAccess(reads|lists, path))
		default:
			rules = append(rules, landlock.PathAccess(reads, path))
		}
	}
	// It is at its best effort for what came after the least version only.
	if err := all.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("give up the files of this host: %w", err)
	}
	return nil
}
