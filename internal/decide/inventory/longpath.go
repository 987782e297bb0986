package inventory

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// stepBytes is how much of a path is given to the kernel at a time: it takes less than
// unix.PathMax. A program can make directories that have longer paths, step by step, and use
// what lies there.
const stepBytes = unix.PathMax - 1

// openLong opens a file by a path of any length. flags are those of unix.Open; O_CLOEXEC is among
// them.
func openLong(path string, flags int) (*os.File, error) {
	at, rest, err := stepTo(path)
	if err != nil {
		return nil, err
	}
	defer closeFD(at)
	fd, err := openAt(at, rest, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openAt tries again what a signal interrupts, which some file systems let it.
func openAt(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// lstatLong follows no link at the path's end.
func lstatLong(path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	at, rest, err := stepTo(path)
	if err != nil {
		return st, err
	}
	err = unix.Fstatat(at, rest, &st, unix.AT_SYMLINK_NOFOLLOW)
	closeFD(at)
	return st, err
}

// readDir reads a directory, its entries in order.
func readDir(path string) ([]os.DirEntry, error) {
	dir, err := openLong(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// stepTo opens the directories on the way to the last part of a path that the kernel takes. Its
// descriptor is given back by closeFD.
func stepTo(path string) (at int, rest string, err error) {
	at = unix.AT_FDCWD
	for len(path) > stepBytes {
		cut := strings.LastIndexByte(path[:stepBytes], '/')
		if cut <= 0 {
			closeFD(at)
			return 0, "", unix.ENAMETOOLONG
		}
		next, err := openAt(at, path[:cut], unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		closeFD(at)
		if err != nil {
			return 0, "", err
		}
		at, path = next, path[cut+1:]
	}
	return at, path, nil
}

func closeFD(at int) {
	if at != unix.AT_FDCWD {
		_ = unix.Close(at)
	}
}

// isNothing tells of an error of a directory that nobody in the sandbox finds anything in: it is
// not there, is none, or may not be read.
func isNothing(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.EPERM}, func(one error) bool { return errors.Is(err, one) })
}
