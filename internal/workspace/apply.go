package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/printable"
)

// Pick gives the changes at or below paths, in their order, with the directories that they
// need. Paths are relative to the directory that was copied, with slashes. A path at which
// nothing has changed is an error.
func Pick(changes []Change, paths []string) ([]Change, error) {
	picked := map[string]bool{}
	for _, wanted := range paths {
		wanted = path.Clean(wanted)
		found := false
		for _, c := range changes {
			if c.Path == wanted || wanted == "." || strings.HasPrefix(c.Path, wanted+"/") {
				picked[c.Path], found = true, true
			}
		}
		if !found {
			return nil, fault.Invalid("nothing has changed at %q", wanted)
		}
	}
	for _, c := range changes {
		if !picked[c.Path] {
			continue
		}
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			picked[dir] = true
		}
	}
	var all []Change
	for _, c := range changes {
		if picked[c.Path] {
			all = append(all, c)
		}
	}
	return all, nil
}

// Apply brings changes over to the original, each whole or not at all. Those that can't be
// brought over, or are in conflict, unless force is set, are left, with an error each. Time
// has passed since they were found, and a person may have read them: what has changed since,
// on either side, is left, too.
func (w *Workspace) Apply(ctx context.Context, changes []Change, force bool) (applied []Change, errs []error) {
	original, err := w.openOriginal()
	if err != nil {
		return nil, []error{err}
	}
	defer func() { _ = original.Close() }()
	copied, err := os.OpenRoot(w.Dir())
	if err != nil {
		return nil, []error{err}
	}
	defer func() { _ = copied.Close() }()
	now := &comparison{w: w, copied: copied, original: original}
	for _, c := range changes {
		before, was := w.list.Entries[c.Path]
		switch meanwhile := now.judged(ctx, c, before, was).Conflict; {
		case c.Refused != "":
			err = fmt.Errorf("%s is left out: %s", printable.Name(c.Path), c.Refused)
		case meanwhile != "" && !force:
			err = fmt.Errorf("%s is left out: %s", printable.Name(c.Path), meanwhile)
		default:
			err = bring(original, copied, c)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		applied = append(applied, c)
		errs = append(errs, w.settle(original, copied, c)...)
	}
	if len(applied) > 0 {
		if err := w.write(); err != nil {
			errs = append(errs, fmt.Errorf("what was brought over will be listed again: %w", err))
		}
	}
	return applied, errs
}

// settle notes that a path is on both sides what it is now.
func (w *Workspace) settle(original, copied *os.Root, c Change) []error {
	if c.How == Removed {
		maps.DeleteFunc(w.list.Entries, func(name string, _ Entry) bool {
			return name == c.Path || strings.HasPrefix(name, c.Path+"/")
		})
		return nil
	}
	here, err := original.Lstat(c.Path)
	if err != nil {
		return []error{err}
	}
	there, err := copied.Lstat(c.Path)
	if err != nil {
		return []error{err}
	}
	w.list.Entries[c.Path] = Entry{Kind: c.Kind, Target: c.Target, Original: stampOf(here), Copy: stampOf(there)}
	return nil
}

// bring brings over one change.
func bring(original, copied *os.Root, c Change) error {
	if dir := path.Dir(c.Path); dir != "." && !realDirectory(original, dir) {
		return fmt.Errorf("%s is left out: %s is no directory of the original", printable.Name(c.Path), printable.Name(dir))
	}
	switch {
	case c.How == Removed:
		return original.RemoveAll(c.Path)
	case c.Kind == Dir:
		err := original.Mkdir(c.Path, 0o777) // what the person's umask leaves of it
		if errors.Is(err, fs.ErrExist) && realDirectory(original, c.Path) {
			return nil
		}
		return err
	case c.Kind == Link:
		return replace(original, c.Path, func(fresh string) error { return original.Symlink(c.Target, fresh) })
	}
	return replace(original, c.Path, func(fresh string) error { return bringFile(original, copied, c, fresh) })
}

// realDirectory tells whether a path and those above it are directories, and no links.
func realDirectory(root *os.Root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// replace has a new file, which create makes beside it, take a path's place in one step.
func replace(root *os.Root, name string, create func(fresh string) error) error {
	const most = 200
	base := path.Base(name)
	fresh := path.Join(path.Dir(name), ".cofferdam-"+strconv.Itoa(os.Getpid())+"-"+base[:min(len(base), most)])
	if err := create(fresh); err != nil {
		_ = root.Remove(fresh)
		return err
	}
	if err := root.Rename(fresh, name); err != nil {
		_ = root.Remove(fresh)
		return err
	}
	return nil
}

// bringFile writes a file's content anew. Its mode is that of the original's, if there is
// one, but for the right to be executed.
func bringFile(original, copied *os.Root, c Change, fresh string) error {
	from, err := openFile(copied, c.Path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil || !c.Seen.same(stampOf(info)) {
		return errors.Join(err, fmt.Errorf("%s is left out: the copy's was changed since it was listed; look at it again", printable.Name(c.Path)))
	}
	mode := fs.FileMode(0o666)
	if c.Executable {
		mode = 0o777
	}
	to, err := original.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = copyData(to, from, info.Size())
	if before, there := original.Lstat(c.Path); there == nil && before.Mode().IsRegular() {
		kept := before.Mode().Perm() &^ 0o111
		if c.Executable {
			kept |= (kept & 0o444) >> 2 // who may read it may execute it
		}
		err = errors.Join(err, to.Chmod(kept))
	}
	return errors.Join(err, to.Close())
}
