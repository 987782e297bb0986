package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// benchGroups is the parent of the control groups of the floors.
func benchGroups() string { return fmt.Sprint("cofferdam-bench-", os.Getpid()) }

// removeGroups removes it, which runc makes in hierarchies that we do not use, too. A group that is not empty stays.
func removeGroups() error {
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		dirs, err := filepath.Glob(pattern + benchGroups())
		errs = append(errs, err)
		for _, dir := range dirs {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
