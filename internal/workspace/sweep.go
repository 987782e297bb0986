package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/filelock"
)

// hold makes a workspace's folder, and holds its lock, as long as it is being filled: see Sweep.
func hold(folder string) (*filelock.Lock, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockOf(folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return lock, nil
}

func lockOf(folder string) (*filelock.Lock, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Of(dir)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return lock, nil
}

// Sweep removes the workspaces in a directory that were never filled: whoever made one was ended before. One that is being
// filled has its lock held, and one that is whole has its list. Without the directory there is nothing to do.
func Sweep(all string) error {
	folders, err := os.ReadDir(all)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, f := range folders {
		if f.IsDir() {
			err = errors.Join(err, sweep(filepath.Join(all, f.Name())))
		}
	}
	return err
}

func sweep(folder string) error {
	if hasList(folder) {
		return nil
	}
	lock, err := lockOf(folder)
	if errors.Is(err, filelock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if hasList(folder) { // it was filled meanwhile
		return lock.Release()
	}
	return errors.Join(os.RemoveAll(folder), lock.Release())
}

// hasList tells whether a folder has a list. Where that can't be seen it has one: nothing is removed then.
func hasList(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, listName))
	return !errors.Is(err, fs.ErrNotExist)
}
