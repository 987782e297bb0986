package export

import (
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
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
	return &osFile{File: f}, nil
}

func (osDisk) read(path string) ([]byte, error) { return os.ReadFile(path) }

func (osDisk) replace(path string, data []byte) error { return wholefile.Replace(path, data, 0o600) }

func (osDisk) syncDir(dir string) error { return wholefile.SyncDir(dir) }

type osFile struct {
	*os.File
	lock *filelock.Lock // nil: not locked
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Lock keeps other exports away until the file is closed.
func (f *osFile) Lock() (err error) {
	f.lock, err = filelock.Of(f.File)
	return err
}

func (f *osFile) Close() error {
	if f.lock != nil {
		return f.lock.Release()
	}
	return f.File.Close()
}
