package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

// lockPoll is how often the lock of the file is asked for.
const lockPoll = 20 * time.Millisecond

// allowed is what a person has allowed, by the projects' directories.
type allowed map[string]agreed

// agreed is a project as it was read.
type agreed struct {
	Digest string            `json:"digest"`
	Parts  map[string]string `json:"parts,omitempty"` // digests; none: an older version noted it
}

// UnmarshalJSON also reads what older versions wrote: the digest alone.
func (a *agreed) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &a.Digest); err == nil {
		return nil
	}
	type plain agreed
	return json.Unmarshal(text, (*plain)(a))
}

// Allowed tells whether a project is as somebody has allowed it. file is where that is kept.
func Allowed(file string, p *Project) (bool, error) {
	all, err := readAllowed(file)
	return err == nil && all[p.Dir].Digest == p.Digest, err
}

// Changed names what of a project is not as somebody has allowed it: "cofferdam.yaml", "the policy".
// known is false if nobody has allowed one in its directory.
func Changed(file string, p *Project) (parts []string, known bool, err error) {
	all, err := readAllowed(file)
	if err != nil {
		return nil, false, err
	}
	was, known := all[p.Dir]
	for name, now := range p.parts {
		if was.Parts != nil && was.Parts[name] != now {
			parts = append(parts, name)
		}
	}
	slices.Sort(parts)
	return parts, known, nil
}

// Known tells whether somebody has allowed settings in a directory.
func Known(file, dir string) (bool, error) {
	all, err := readAllowed(file)
	_, known := all[dir]
	return known, err
}

// Dirs are the directories whose settings somebody has allowed, sorted.
func Dirs(file string) ([]string, error) {
	all, err := readAllowed(file)
	return slices.Sorted(maps.Keys(all)), err
}

// Above is the directory above one whose settings somebody has allowed, and which those of the one
// hide; "": there is none.
func Above(file, dir string) (string, error) {
	all, err := readAllowed(file)
	for err == nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		if _, is := all[dir]; is {
			return dir, nil
		}
	}
	return "", err
}

// Allow notes that somebody has read a project as it is.
func Allow(ctx context.Context, file string, p *Project) error {
	return change(ctx, file, func(all allowed) { all[p.Dir] = agreed{p.Digest, p.parts} })
}

// Forbid takes that back.
func Forbid(ctx context.Context, file, dir string) error {
	return change(ctx, file, func(all allowed) { delete(all, dir) })
}

func readAllowed(file string) (allowed, error) {
	if file == "" {
		return allowed{}, nil
	}
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
	all, err := readAllowed(file)
	if err != nil {
		return err
	}
	do(all)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return atomicfile.Replace(file, text, 0o600)
}
