package workspace

import (
	"context"
	"errors"
	"io/fs"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// Now is how the original is now, which may have files that the copy's run never saw: the paths
// of its files and links, and what the links say.
func (w *Workspace) Now(ctx context.Context) (paths []string, links map[string]string, err error) {
	original, err := w.openOriginal()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = original.Close() }()
	links = map[string]string{}
	err = treewalk.WalkRoot(ctx, original, bounds(), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has just gone
			return nil
		case err != nil || d.IsDir():
			return err
		}
		paths = append(paths, name)
		if d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		target, err := original.Readlink(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		links[name] = target
		return err
	})
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return nil, nil, fault.Invalid("%s by now %s; nothing can be brought over to it", w.list.Original, bound.Has)
	}
	return paths, links, err
}

// ListedLinks are the links that the original had when it was copied, and what they said.
func (w *Workspace) ListedLinks() map[string]string {
	links := map[string]string{}
	for name, e := range w.list.Entries {
		if e.Kind == Link {
			links[name] = e.Target
		}
	}
	return links
}
