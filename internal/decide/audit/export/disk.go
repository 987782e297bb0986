package export

import (
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// exportDisk is where outputs and cursors are. The tests put one under them that dies
// at a chosen call.
type exportDisk interface {
	openFile(path string, mustBeNew bool) (file, error)
	readFile(path string) ([]byte, error)
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

// osDisk is the host's. An export goes on by itself, as root from a timer perhaps: no link is
// followed that a sandbox could have left on the way to its files.
type osDisk struct{ trees []hostpath.Tree }

// maxCursor bounds what is read of a cursor, in bytes.
const maxCursor = 64 << 10

func (d osDisk) openFile(path string, mustBeNew bool) (file, error) {
	entry, err := hostpath.Find(path, d.trees)
	if err != nil {
		return nil, err
	}
	if mustBeNew && !entry.File.IsZero() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrExist}
	}
	f, err := entry.OpenFile(os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &osFile{File: f}, nil
}

func (d osDisk) readFile(path string) ([]byte, error) {
	entry, err := hostpath.Find(path, d.trees)
	if err != nil {
		return nil, err
	}
	return entry.Read(maxCursor)
}

func (d osDisk) replace(path string, data []byte) error {
	entry, err := hostpath.Find(path, d.trees)
	switch {
	case err != nil:
		return err
	case entry.File.IsZero():
		return entry.Create(data, 0o600)
	}
	return entry.Replace(data)
}

func (d osDisk) syncDir(dir string) error {
	p, err := hostpath.Resolve(dir, d.trees)
	if err != nil {
		return err
	}
	defer p.Close()
	return atomicfile.SyncDir(p.Proc())
}

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
