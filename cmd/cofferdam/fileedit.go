package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
)

// fileEdit is a change of a file that a person sees before it is made. It is made where the file
// was found, whatever has that name by then.
type fileEdit struct {
	path          string // without symbolic links
	before, after []byte
	isNew         bool
	diff          string

	entry hostpath.Entry // zero: its directory is not there yet
}

// findEdit finds and reads a file that is to be changed; one that is not there is new. Without
// its directory it is fs.ErrNotExist.
func findEdit(what, path string, most int64) (fileEdit, error) {
	entry, err := findNamed(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileEdit{}, err
	}
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return fileEdit{}, fault.Invalid("the %s %s is not a file", what, path)
	}
	if err != nil {
		return fileEdit{}, fault.Invalid("the %s %s %s", what, path, because(err))
	}
	e := fileEdit{path: entry.Name, entry: entry, isNew: entry.File.IsZero()}
	if e.isNew {
		return e, nil
	}
	p, err := hostpath.Open(entry.Name, entry.File)
	if err != nil {
		return fileEdit{}, fault.Invalid("the %s %s %s", what, path, because(err))
	}
	defer p.Close()
	e.before, err = readOpen(what, path, p, most)
	return e, err
}

// writeFile replaces the file in one step, with its mode and owner, if it is still
// what was shown.
func (e fileEdit) writeFile() error {
	if e.isNew {
		return e.createFile()
	}
	now, err := e.entry.Read(int64(len(e.before)) + 1)
	if err != nil || !bytes.Equal(now, e.before) {
		return fault.Invalid("%s was changed while you looked at the difference; nothing was written", e.path)
	}
	if err := e.entry.Replace(e.after); err != nil {
		return fmt.Errorf("write %s: %w", e.path, err)
	}
	return e.vouchAfter()
}

// vouchAfter notes what a person has seen of a file: the difference, to what they had seen before.
func (e fileEdit) vouchAfter() error {
	trees := agentTrees()
	if len(trees) == 0 {
		if stranger, err := hostpath.StrangerOf(e.path); stranger == nil && err == nil {
			return nil
		}
	}
	book, err := vouchedBook()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	err = book.Check(ctx, "file", e.path, e.before, trees)
	if _, unseen := errors.AsType[*vouched.UnseenError](err); unseen {
		return nil // whoever uses it is asked about all of it
	}
	if err != nil {
		return err // nobody knows whether they had seen it
	}
	return book.Vouch(ctx, e.path, e.after)
}

// createFile makes the file, and its directory if there was none.
func (e fileEdit) createFile() error {
	if e.entry.Name == "" {
		dir, err := hostpath.MakeDirs(filepath.Dir(e.path), 0o700, agentTrees())
		if err != nil {
			return fault.Invalid("the directory %s %s", filepath.Dir(e.path), because(err))
		}
		dir.Close()
		if e.entry, err = findNamed(e.path); err != nil {
			return fault.Invalid("%s %s", e.path, because(err))
		}
	}
	err := e.entry.Create(e.after, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fault.Invalid("%s was created meanwhile; nothing was written", e.path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", e.path, err)
	}
	return nil
}
