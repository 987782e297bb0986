package advisory

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

// importDisk is where the database lives. The tests put one under it that fails at a
// chosen call, as a machine does that goes down in the middle.
type importDisk interface {
	// createFile makes a file that is not there yet.
	createFile(path string) (diskFile, error)
	rename(from, to string) error
	// syncDir makes the directory's entries durable.
	syncDir(dir string) error
	removeFile(path string) error
}

type diskFile interface {
	io.WriteCloser
	Sync() error
}

type osDisk struct{}

func (osDisk) createFile(path string) (diskFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) removeFile(path string) error { return os.Remove(path) }

func (osDisk) syncDir(dir string) error { return atomicfile.SyncDir(dir) }

// replace writes a file whole beside its place and puts it there, durably:
// after a crash there is the old one or the new one.
func replace(d importDisk, path string, data []byte) error {
	beside := path + newSuffix
	if err := d.removeFile(beside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := d.createFile(beside)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.rename(beside, path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

const newSuffix = ".new"
