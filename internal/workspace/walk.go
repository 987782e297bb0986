package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Bounds of what is looked through in a copy: whoever was inside chose the names and how
// many there are.
const (
	mostNames  = 256 << 20 // bytes of all paths
	readAtOnce = 1024      // entries of a directory
)

// walker looks through a copy, in which anybody may have made anything: a directory is read
// in parts, and never as a whole.
type walker struct {
	visit          func(name string, info fs.FileInfo) error
	entries, names int // how many there may still be, and how many bytes their paths may still have
}

// all visits what is below root, parents before what is in them.
func (w *walker) all(ctx context.Context, root *os.Root) error {
	return w.dir(ctx, root, ".", 0)
}

func (w *walker) dir(ctx context.Context, root *os.Root, at string, depth int) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for {
		part, err := dir.ReadDir(readAtOnce)
		for _, d := range part {
			if err := w.entry(ctx, root, at, d.Name(), depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *walker) entry(ctx context.Context, root *os.Root, at, base string, depth int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	name := path.Join(at, base)
	w.entries--
	w.names -= len(name)
	if w.entries < 0 || w.names < 0 || depth >= mostDepth {
		return fault.Invalid("the copy has more than %d files, names of more than %d MB, or a file more than %d directories deep; nothing can be brought over from it", mostEntries, mostNames>>20, mostDepth)
	}
	info, err := root.Lstat(base)
	if err != nil {
		return err
	}
	if err := w.visit(name, info); err != nil || !info.IsDir() {
		return err
	}
	below, err := root.OpenRoot(base)
	if err != nil {
		return err
	}
	defer func() { _ = below.Close() }()
	return w.dir(ctx, below, name, depth+1)
}
