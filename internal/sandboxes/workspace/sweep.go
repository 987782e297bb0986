package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// mostHolds is how often a folder is made again that a Sweep took away before it was held.
const mostHolds = 100

// holdFolder makes a workspace's folder, and holds its lock, as long as it is being filled: see Sweep. Before it is held a Sweep may
// take it for one that nobody fills.
func holdFolder(folder string) (*filelock.Lock, error) {
	for range mostHolds {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		lock, err := lockMade(folder)
		if lock != nil || err != nil {
			return lock, err
		}
	}
	return nil, fmt.Errorf("%s was removed each time that it was made", folder)
}

// lockMade locks a folder that was just made; nil if somebody has taken it away.
func lockMade(folder string) (*filelock.Lock, error) {
	dir, err := os.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it is gone, which is no error
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	lock, err := filelock.WaitOf(dir) // a Sweep has it for a moment
	if err != nil {
		return nil, errors.Join(err, dir.Close(), os.RemoveAll(folder))
	}
	made, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(err, lock.Release(), os.RemoveAll(folder))
	}
	if now, err := os.Lstat(folder); err != nil || !os.SameFile(made, now) {
		return nil, lock.Release()
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
			err = errors.Join(err, sweepFolder(filepath.Join(all, f.Name())))
		}
	}
	return err
}

func sweepFolder(folder string) error {
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
