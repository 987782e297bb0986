package export

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// disk is where outputs and cursors are. The tests put one under them that dies
// at a chosen call.
type disk interface {
	open(path string, mustBeNew bool) (file, error)
	read(path string) ([]byte, error)
	// replace writes a file whole or not at all, its bytes durable.
	replace(path string, data []byte) error
	syncDir(dir string) error
}

type file interface {
	WriteAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Size() (int64, error)
	Lock() error
	Close() error
}

type osDisk struct{}

func (osDisk) open(path string, mustBeNew bool) (file, error) {
	flags := os.O_RDWR | os.O_CREATE
	if mustBeNew {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) read(path string) ([]byte, error) { return os.ReadFile(path) }

func (osDisk) replace(path string, data []byte) error {
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func (osDisk) syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Lock keeps other exports away until the file is closed.
func (f osFile) Lock() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
