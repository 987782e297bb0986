package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// lockPoll is how often the lock of the file is asked for.
const lockPoll = 20 * time.Millisecond

// allowed are the digests that a person has allowed, by the projects' directories.
type allowed map[string]string

// Allowed tells whether a project is as somebody has allowed it. file is where that is kept.
func Allowed(file string, p *Project) (bool, error) {
	all, err := read(file)
	return err == nil && all[p.Dir] == p.Digest, err
}

// Allow notes that somebody has read a project as it is.
func Allow(ctx context.Context, file string, p *Project) error {
	return change(ctx, file, func(all allowed) { all[p.Dir] = p.Digest })
}

// Forbid takes that back.
func Forbid(ctx context.Context, file, dir string) error {
	return change(ctx, file, func(all allowed) { delete(all, dir) })
}

func read(file string) (allowed, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return allowed{}, nil
	}
	if err != nil {
		return nil, err
	}
	all := allowed{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s, which has the projects that you have allowed, can't be read: %w; remove it, and allow them again", file, err)
	}
	return all, nil
}

// change changes the file while nobody else does.
func change(ctx context.Context, file string, do func(allowed)) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	lock, err := filelock.Await(ctx, file+".lock", lockPoll, nil)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // it goes with this process
	all, err := read(file)
	if err != nil {
		return err
	}
	do(all)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return wholefile.Replace(file, text, 0o600)
}
