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

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
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
	dir, err := w.originalPath()
	if err != nil {
		return nil, []error{err}
	}
	defer dir.Close()
	original, err := dir.Root()
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
			err = fmt.Errorf("%s is left out: %s", text.Name(c.Path), c.Refused)
		case meanwhile != "" && !force:
			err = fmt.Errorf("%s is left out: %s", text.Name(c.Path), meanwhile)
		default:
			err = leftOut(c, bringChange(dir, copied, c))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		applied = append(applied, c)
		errs = append(errs, w.settlePath(original, copied, c)...)
	}
	if len(applied) > 0 {
		if err := w.writeList(); err != nil {
			errs = append(errs, fmt.Errorf("what was brought over will be listed again: %w", err))
		}
	}
	return applied, errs
}

// settlePath notes that a path is on both sides what it is now.
func (w *Workspace) settlePath(original, copied *os.Root, c Change) []error {
	if c.How == Removed {
		maps.DeleteFunc(w.list.Entries, func(name string, _ Entry) bool {
			return name == c.Path || strings.HasPrefix(name, c.Path+"/")
		})
		return nil
	}
	here, err := original.Lstat(c.Path)
	if err != nil {
		return []error{fmt.Errorf("%s is brought over, and can't be looked at: %w", text.Name(c.Path), err)}
	}
	there, err := copied.Lstat(c.Path)
	if err != nil {
		return []error{fmt.Errorf("%s is brought over, and can't be looked at: %w", text.Name(c.Path), err)}
	}
	w.list.Entries[c.Path] = Entry{Kind: c.Kind, Target: c.Target, Original: stampOf(here), Copy: stampOf(there)}
	return nil
}

// leftOut has an error say which path is left out: a system call's own names the last element alone.
func leftOut(c Change, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is left out: %w", text.Name(c.Path), err)
}

// bringChange brings over one change. A new file belongs to the owner of the directory that it is in.
func bringChange(original *hostpath.Path, copied *os.Root, c Change) error {
	in, err := openPlace(original, path.Dir(c.Path))
	if err != nil {
		return err
	}
	defer func() { _ = in.dir.Close() }()
	name := path.Base(c.Path)
	switch {
	case c.How == Removed:
		return in.dir.RemoveAll(name)
	case c.Kind == Dir:
		err := in.asOwner(func() error { return in.dir.Mkdir(name, 0o777) }) // what the person's umask leaves of it
		if errors.Is(err, fs.ErrExist) {
			if there, look := in.dir.Lstat(name); look == nil && there.IsDir() {
				return nil
			}
		}
		return err
	case c.Kind == Link:
		return in.replace(name, func(fresh string) error {
			return in.asOwner(func() error { return in.dir.Symlink(c.Target, fresh) })
		})
	}
	return in.replace(name, func(fresh string) error { return bringFile(in, copied, c, fresh) })
}

// replace has a new file, which create makes beside it, take a name's place in one step.
func (in originalDir) replace(name string, create func(fresh string) error) error {
	const most = 200
	fresh := ".cofferdam-" + strconv.Itoa(os.Getpid()) + "-" + name[:min(len(name), most)]
	if err := create(fresh); err != nil {
		_ = in.dir.Remove(fresh)
		return err
	}
	if err := in.dir.Rename(fresh, name); err != nil {
		_ = in.dir.Remove(fresh)
		return err
	}
	return nil
}

// bringFile writes a file's content anew. Its mode and its owner are those of the original's, if there is
// one, but for the right to be executed.
func bringFile(in originalDir, copied *os.Root, c Change, fresh string) error {
	from, err := openFile(copied, c.Path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil || !c.Seen.sameAs(stampOf(info)) {
		return errors.Join(err, errors.New("the copy's was changed since it was listed; look at it again"))
	}
	mode := fs.FileMode(0o666)
	if c.Executable {
		mode = 0o777
	}
	to, err := in.dir.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = copyData(to, from, info.Size())
	before, look := in.dir.Lstat(path.Base(c.Path))
	there := look == nil && before.Mode().IsRegular()
	if there {
		err = errors.Join(err, giveTo(to, before))
	} else {
		err = errors.Join(err, giveTo(to, in.owner))
	}
	if there { // once it has its owner: a change of that takes rights away
		kept := before.Mode().Perm() &^ 0o111
		if c.Executable {
			kept |= (kept & 0o444) >> 2 // who may read it may execute it
		}
		err = errors.Join(err, to.Chmod(kept))
	}
	return errors.Join(err, to.Close())
}
