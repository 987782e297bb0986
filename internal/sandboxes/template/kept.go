package template

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
)

// Kept is what the store has for later builds: tools, compiled libraries, packages.
// No template needs it.
func (s *Store) Kept() (files int, bytes int64, err error) {
	for _, folder := range s.keptFolders() {
		err = errors.Join(err, filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				files++
				bytes += info.Size()
			}
			return err
		}))
	}
	return files, bytes, err
}

// Forget removes what is kept for later builds, once no build is at work.
func (s *Store) Forget(ctx context.Context) error {
	for _, l := range layouts() {
		lock, err := s.lockName(ctx, l.name, nil)
		if err != nil {
			return err
		}
		defer lock.releaseLock()
	}
	var failures []error
	for _, folder := range s.keptFolders() {
		failures = append(failures, s.removeTree(ctx, folder))
	}
	return errors.Join(failures...)
}

func (s *Store) keptFolders() []string {
	folders, _ := filepath.Glob(filepath.Join(s.dir, keptDebs+"*"))
	tools, _ := filepath.Glob(filepath.Join(s.dir, keptTools))
	return append(folders, tools...)
}
