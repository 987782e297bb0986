package microvm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// A machine of QEMU's has its memory in a file of a file system in memory that is in its
// monitor's root, and nowhere else. So the stage can write it down and lay it out, which is a
// copy, and need not have QEMU read and write it page by page. Each machine has a file of its
// own: QEMU opens it for writing, and must not change what others run. It counts as the
// sandbox's memory, is never on a disk, and goes with the monitor.
const (
	memoryDir  = "memory"
	memoryFile = "ram"
)

// memoryMode is that of the file system: its folder is not the monitor's, which could put
// something else in the file's place.
const memoryMode = 0o755

// layMemory makes the memory of a machine in a monitor's root: that of the image that it is a
// copy of, or none yet. That counts as the sandbox's already, in control groups of some files.
func (p stagePlan) layMemory(at string, groups []string) (err error) {
	dir := filepath.Join(at, memoryDir)
	if err := os.Mkdir(dir, memoryMode); err != nil {
		return err
	}
	options := fmt.Sprintf("size=%dm,nr_inodes=4,mode=%o", p.Machine.MiB, memoryMode)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("make the machine's memory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, memoryFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := errors.Join(f.Truncate(p.Machine.MiB<<20), f.Chown(p.UID, p.UID)); err != nil {
		return err
	}
	if p.Arrive == "" {
		return nil
	}
	if err := countMemory(groups); err != nil {
		return err
	}
	if err := unpackTo(filepath.Join(p.Arrive, memoryName), f); err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Size() != p.Machine.MiB<<20 {
		return errors.Join(err, fault.New(fault.ErrConflict, "the memory of the image at %s is not one of %d MB", p.Arrive, p.Machine.MiB))
	}
	return nil
}

// countMemory has what this process, whose leader is another thread, takes of memory count as the
// sandbox's from now on: that is asked of the leader. In version 2 it is with its threads.
func countMemory(groups []string) error {
	for _, file := range groups {
		if filepath.Base(file) != "tasks" {
			continue
		}
		if err := enterGroup(file, strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
	}
	return nil
}

// packMemory writes what a machine that stands still has in memory.
func packMemory(b bundle, m machine, to string) error {
	f, err := memoryOf(b)
	if err != nil {
		return err
	}
	defer f.Close()
	return packFile(f, m.MiB<<20, to)
}

// memoryOf is the file of a machine that runs. It is in the mount namespace of its monitor.
func memoryOf(b bundle) (*os.File, error) {
	all, err := b.processes()
	if err != nil {
		return nil, err
	}
	path := filepath.Join("/proc", strconv.Itoa(all[0].Pid), "root", memoryDir, memoryFile)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if !all[0].Is() { // then the path was another's, or nobody's
		if err == nil {
			_ = f.Close() // it was not used
		}
		return nil, fault.New(fault.ErrConflict, "the monitor has ended")
	}
	if err != nil {
		return nil, fmt.Errorf("open the machine's memory: %w", err)
	}
	return f, nil
}
