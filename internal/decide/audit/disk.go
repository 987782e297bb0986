package audit

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

// logDisk is how the log changes files; it reads them directly. The tests put one
// under the log that fails, or dies, at a chosen call.
type logDisk interface {
	// openFile opens or creates a file for writing, mode 0600.
	openFile(path string) (writable, error)
	rename(from, to string) error
	removeFile(path string) error
	// syncDir makes the directory's entries durable.
	syncDir(dir string) error
}

// writable is a file open for writing. WriteAt may write less than it was given,
// with or without an error.
type writable interface {
	WriteAt(p []byte, off int64) (int, error)
	Datasync() error
	Truncate(size int64) error
	Close() error
}

type osDisk struct{}

func (osDisk) openFile(path string) (writable, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) // #nosec G304 -- the path is made by the log from its own directory
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) removeFile(path string) error { return os.Remove(path) }

func (osDisk) syncDir(dir string) error { return atomicfile.SyncDir(dir) }

type osFile struct{ *os.File }

func (f osFile) Datasync() error { return unix.Fdatasync(int(f.Fd())) }

// uninterrupted repeats a call that a signal interrupted.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeAll writes p at off, however many calls that takes. An EINTR is no
// failure; a call that writes nothing and says nothing is.
func writeAll(f writable, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := f.WriteAt(p, off)
		p, off = p[n:], off+int64(n)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return unix.EIO
		}
	}
	return nil
}

// replace writes a file so that after any crash it is there whole, with the old
// content or the new one: to a file beside it, synced, then renamed.
func replace(d logDisk, path string, fill func(io.Writer) error) error {
	beside := path + ".tmp"
	f, err := d.openFile(beside)
	if err != nil {
		return err
	}
	w := &sequential{file: f}
	err = uninterrupted(func() error { return f.Truncate(0) })
	if err == nil {
		err = fill(w)
	}
	if err == nil {
		err = uninterrupted(f.Datasync)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := uninterrupted(func() error { return d.rename(beside, path) }); err != nil {
		return err
	}
	return uninterrupted(func() error { return d.syncDir(filepath.Dir(path)) })
}

// sequential writes a file from its beginning.
type sequential struct {
	file writable
	size int64
}

func (s *sequential) Write(p []byte) (int, error) {
	if err := writeAll(s.file, p, s.size); err != nil {
		return 0, err
	}
	s.size += int64(len(p))
	return len(p), nil
}
