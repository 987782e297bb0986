package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/linediff"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// mostDiffed is how large a file may be, before and after, of which lines are compared.
const mostDiffed = 256 << 10

// Diff is a change in unified form. Its path and a link's target are printable, each in the one
// line that names it; the lines of its content are as they are, and whoever shows them makes them
// printable. A file that is no text, too large, or in conflict is one line that says so.
func (w *Workspace) Diff(c Change) (string, error) {
	name := text.Name(c.Path)
	switch {
	case c.Kind == Dir:
		return fmt.Sprintf("%s directory %s\n", c.How, name), nil
	case c.Kind == Link:
		return fmt.Sprintf("%s link %s -> %s\n", c.How, name, text.Name(c.Target)), nil
	case c.Kind != File:
		return fmt.Sprintf("%s %s, which is no file\n", c.How, name), nil
	}
	before, old, err := sideOf(w.openOriginal, c, c.How != Added)
	if err != nil {
		return "", err
	}
	after, young, err := sideOf(w.openCopy, c, c.How != Removed)
	if err != nil {
		return "", err
	}
	mode, err := w.modeLine(c)
	if err != nil {
		return "", err
	}
	if !old || !young {
		return mode + fmt.Sprintf("%s %s, whose lines are not compared: it is no text, or larger than %d kB\n", c.How, name, mostDiffed>>10), nil
	}
	content := linediff.Unified(nameOr(c.How == Added, "a/"+c.Path), nameOr(c.How == Removed, "b/"+c.Path), before, after)
	if content == "" {
		content = map[How]string{
			Added:   fmt.Sprintf("added %s, which is empty\n", name),
			Removed: fmt.Sprintf("removed %s, which was empty\n", name),
		}[c.How]
	}
	return mode + content, nil
}

// modeLine says of a file that it becomes a program, or is none any more, whatever becomes of its lines; "": neither.
func (w *Workspace) modeLine(c Change) (string, error) {
	was := false
	if c.How == Removed {
		return "", nil
	}
	if c.How == Modified {
		root, err := w.openOriginal()
		if err != nil {
			return "", err
		}
		defer func() { _ = root.Close() }()
		info, err := root.Lstat(c.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		was = err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	}
	if was == c.Executable {
		return "", nil
	}
	return fmt.Sprintf("%s %s: executable %v\n", c.How, text.Name(c.Path), c.Executable), nil
}

// sideOf reads one side of a change. lined is false for what has no lines.
func sideOf(open func() (*os.Root, error), c Change, there bool) (data []byte, lined bool, err error) {
	if !there {
		return nil, true, nil
	}
	root, err := open()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }()
	data, whole, err := readSome(root, c.Path, mostDiffed)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
		return nil, true, nil // the conflict says so
	}
	return data, whole && utf8.Valid(data) && !bytes.ContainsRune(data, 0), err
}

func nameOr(none bool, name string) string {
	if none {
		return "/dev/null"
	}
	return name
}
