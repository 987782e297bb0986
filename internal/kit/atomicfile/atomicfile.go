// Package atomicfile replaces and makes files in one step: whoever reads one sees the
// whole of what was there before, or the whole of what is there now.
//
// What a nil error means, in each function's words:
//
//   - durable: after a loss of power the new content is there, under its name. The
//     content is brought to the disk, then the name changes, then the directory is
//     brought to the disk.
//   - volatile: other processes see the new content. After a loss of power the old
//     content can be there, the new one, or an empty file.
//
// An error means that the old content is there or the new one, and that nobody may
// rely on either. A process that dies in between leaves a file beside, whose name
// begins with a dot and has ".new-" in it; it is in nobody's way.
//
// Not guaranteed: anything about two that replace the same file at one time, but that
// one of them is last. A symbolic link at the path is replaced, not followed.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Replace is durable.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return putFile(path, data, func(f *os.File) error { return f.Chmod(mode) }, os.Rename, true)
}

// ReplaceVolatile is volatile, and does not wait for a disk.
func ReplaceVolatile(path string, data []byte, mode fs.FileMode) error {
	return putFile(path, data, func(f *os.File) error { return f.Chmod(mode) }, os.Rename, false)
}

// ReplaceLike is durable. The new file has the mode and the owner of the one that is
// there; it fails if there is none, or what is there is no file, such as a link.
func ReplaceLike(path string, data []byte) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: path, Err: syscall.EINVAL}
	}
	return putFile(path, data, func(f *os.File) error { return likenTo(f, info) }, os.Rename, true)
}

// Create is durable. It fails with fs.ErrExist if something has the name, and leaves
// that alone.
func Create(path string, data []byte, mode fs.FileMode) error {
	return putFile(path, data, func(f *os.File) error { return f.Chmod(mode) }, claimName, true)
}

// CreateFrom creates, as Create does, a file that is too large to be held: write writes it, and its error is
// returned as it is.
func CreateFrom(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return putFile(path, nil, func(f *os.File) error {
		if err := write(f); err != nil {
			return err
		}
		return f.Chmod(mode)
	}, claimName, true)
}

// claimName has a file take a name that nothing has. Some file systems can only do so by a
// link, and others have no links.
func claimName(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return os.Link(from, to)
	case err != nil:
		return &os.LinkError{Op: "create", Old: from, New: to, Err: err}
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// putFile writes a file beside its place and has it take its name.
func putFile(path string, data []byte, prepare func(*os.File) error, name func(from, to string) error, durable bool) error {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base[:min(len(base), 64)]+".new-") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a rename there is none
	_, err = f.Write(data)
	if err == nil {
		err = prepare(f)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := name(f.Name(), path); err != nil || !durable {
		return err
	}
	return SyncDir(dir)
}

// likenTo gives a file the mode and owner of another.
func likenTo(f *os.File, info fs.FileInfo) error {
	if was, ok := info.Sys().(*syscall.Stat_t); ok && (int(was.Uid) != os.Geteuid() || int(was.Gid) != os.Getegid()) {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(info.Mode().Perm())
}
