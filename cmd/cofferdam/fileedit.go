package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// fileEdit is a change of a file that a person sees before it is made.
type fileEdit struct {
	path          string // without symbolic links
	before, after []byte
	isNew         bool
	diff          string
}

// write replaces the file in one step, with its mode and owner, if it is still
// what was shown.
func (e fileEdit) write() error {
	if e.isNew {
		err := wholefile.Create(e.path, e.after, 0o644)
		if errors.Is(err, os.ErrExist) {
			return fault.Invalid("%s was created meanwhile; nothing was written", e.path)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", e.path, err)
		}
		return nil
	}
	now, err := os.ReadFile(e.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, e.before) {
		return fault.Invalid("%s was changed while you looked at the difference; nothing was written", e.path)
	}
	if err := wholefile.ReplaceLike(e.path, e.after); err != nil {
		return fmt.Errorf("write %s: %w", e.path, err)
	}
	return nil
}
