package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// Bounds of what is copied and looked through.
const (
	mostEntries = 1_000_000
	mostDepth   = 200       // directories in each other
	mostNames   = 256 << 20 // bytes of all paths
	mostList    = 512 << 20 // bytes of the list's file
)

// Names in a workspace's folder.
const (
	copyName = "copy"
	listName = "list.json"
)

// list is what a workspace's folder keeps.
type list struct {
	Original string            `json:"original"`
	ID       hostpath.Identity `json:"id"`             // of the original; zero: an older version made the list
	Left     []string          `json:"left,omitempty"` // paths that are neither file, directory nor link
	Entries  map[string]Entry  `json:"entries"`        // by path, with slashes; "." is not among them
	Deciding []string          `json:"deciding,omitempty"`
	Host     string            `json:"host,omitempty"` // the daemon whose sandbox works in it; "": this installation's own
}

// Workspace is a copy of a directory, in a folder of its own.
type Workspace struct {
	dir    string
	list   list
	hidden int
}

// Hides makes, of a directory that is copied, what tells which paths of it the copy must not have;
// nil: it has all.
type Hides func(dir *hostpath.Path) (func(name string, d fs.DirEntry) bool, error)

// Hidden is how many paths of the original were left out of the copy as hidden ones, without those
// below them, when it was made.
func (w *Workspace) Hidden() int { return w.hidden }

// Dir is where the copy is.
func (w *Workspace) Dir() string { return filepath.Join(w.dir, copyName) }

// Original is the directory that was copied.
func (w *Workspace) Original() string { return w.list.Original }

// Listed are the paths that the original had when it was copied, in no order.
func (w *Workspace) Listed() iter.Seq[string] { return maps.Keys(w.list.Entries) }

// Left are paths of the original that the copy has not, as they are no files.
func (w *Workspace) Left() []string { return w.list.Left }

// NoteDeciding keeps which paths of the original say what the run may do that has the copy: its
// policy and its lockfiles. They are relative, with slashes.
func (w *Workspace) NoteDeciding(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	w.list.Deciding = paths
	return w.writeList()
}

// NoteHost keeps which daemon's sandbox works in the copy, by its address: unix:///PATH; "" is this installation's own.
func (w *Workspace) NoteHost(address string) error {
	if w.list.Host = address; address == "" {
		return nil
	}
	return w.writeList()
}

// Host is what NoteHost was told.
func (w *Workspace) Host() string { return w.list.Host }

// Deciding are the paths that NoteDeciding was told.
func (w *Workspace) Deciding() []string { return w.list.Deciding }

// Make copies a directory to a folder, which must not be there. Files share their blocks
// with the original's where the file system can do that. After an
// error nothing is left. A name that hides says true for is not in the copy, nor is anything below
// it; hides nil: all is.
func Make(ctx context.Context, original, folder string, hides Hides) (w *Workspace, err error) {
	dir, err := hostpath.Resolve(original, nil)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	original = dir.Name
	if inside(original, folder) {
		return nil, fault.Invalid("the copy of %s would lie in it, in %s; set COFFERDAM_STATE to a directory elsewhere", original, folder)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return nil, err
	}
	making, err := holdFolder(folder)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder)
		}
		_ = making.Release() // it goes with this process
	}()
	w = &Workspace{dir: folder, list: list{Original: original, ID: dir.ID, Entries: map[string]Entry{}}}
	if err := w.copyDir(ctx, dir, hides); err != nil {
		return nil, err
	}
	return w, w.writeList()
}

// copyDir fills the workspace with what is in a directory.
func (w *Workspace) copyDir(ctx context.Context, dir *hostpath.Path, hides Hides) error {
	from, err := dir.Root()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if err := os.Mkdir(w.Dir(), 0o755); err != nil { //nolint:gosec // the sandbox's user works in it; the folder above is shut
		return err
	}
	to, err := os.OpenRoot(w.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	c := &copier{from: from, to: to, list: &w.list}
	if hides != nil {
		if c.hides, err = hides(dir); err != nil {
			return err
		}
	}
	if err := c.copyTree(ctx); err != nil {
		return err
	}
	w.hidden = c.hidden
	return c.stamps()
}

// writeList keeps the list.
func (w *Workspace) writeList() error {
	l, err := w.list.renamed(func(name string) (string, error) { return keptName(name), nil })
	if err != nil {
		return err
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return atomicfile.ReplaceVolatile(filepath.Join(w.dir, listName), text, 0o600)
}

// Open finds a workspace that was made.
func Open(folder string) (*Workspace, error) {
	file, err := os.Open(filepath.Join(folder, listName))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	w := &Workspace{dir: folder}
	if err := json.NewDecoder(io.LimitReader(file, mostList)).Decode(&w.list); err != nil {
		return nil, fmt.Errorf("the list of the workspace %s can't be read: %w", folder, err)
	}
	l, err := w.list.renamed(nameOfKept)
	if err != nil {
		return nil, fmt.Errorf("the list of the workspace %s can't be read: %w", folder, err)
	}
	w.list = *l
	return w, nil
}

// openOriginal opens the directory of originalPath for what is in it.
func (w *Workspace) openOriginal() (*os.Root, error) {
	dir, err := w.originalPath()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Root()
}

// originalPath opens the original, if the directory is there that was copied, under its name and
// through no link. Another may have the name by then, which nobody wanted to be written to.
func (w *Workspace) originalPath() (*hostpath.Path, error) {
	dir, err := hostpath.Open(w.list.Original, hostpath.Identity{Type: hostpath.Dir})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the directory that was copied is not there: %w", err)
	}
	if err == nil {
		now := dir.ID
		now.Device = w.list.ID.Device // some devices get another number when the host starts
		if !w.list.ID.IsZero() && !w.list.ID.Is(now) {
			dir.Close()
			err = &hostpath.ChangedError{Path: dir.Name}
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrConflict, err, "the directory %s is not the one that was copied; put that back, or discard the copy", w.list.Original)
	}
	return dir, nil
}

// openCopy opens the copy, whose directory whoever is inside can't replace.
func (w *Workspace) openCopy() (*os.Root, error) { return os.OpenRoot(w.Dir()) }

// Marks are those of some names that the original has now in the directories of paths.
func (w *Workspace) Marks(paths iter.Seq[string], names []string) []string {
	original, err := w.openOriginal()
	if err != nil {
		return nil // nothing can be brought over to it either
	}
	defer func() { _ = original.Close() }()
	var found []string
	looked := map[string]bool{}
	for name := range paths {
		for dir := name; dir != "."; {
			if dir = path.Dir(dir); looked[dir] {
				break
			}
			looked[dir] = true
			for _, mark := range names {
				if _, err := original.Lstat(path.Join(dir, mark)); err == nil {
					found = append(found, path.Join(dir, mark))
				}
			}
		}
	}
	return found
}

// Remove takes the copy away, with all that was not applied.
func (w *Workspace) Remove() error { return os.RemoveAll(w.dir) }

// inside tells whether a path is a directory or below it.
func inside(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// copier is one copying.
type copier struct {
	from, to *os.Root
	list     *list
	hides    func(name string, d fs.DirEntry) bool // nil: nothing
	hidden   int
}

func (c *copier) copyTree(ctx context.Context) error {
	err := treewalk.WalkRoot(ctx, c.from, bounds(), func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if c.hides != nil && c.hides(name, d) {
			c.hidden++
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just gone
		}
		if err != nil {
			return err
		}
		return c.copyOne(name, info)
	})
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return fault.Invalid("%s %s; give the run a smaller directory", c.list.Original, bound.Has)
	}
	return err
}

// copyOne copies one path.
func (c *copier) copyOne(name string, info fs.FileInfo) (err error) {
	entry := Entry{Kind: kindOfMode(info.Mode()), Original: stampOf(info)}
	switch entry.Kind {
	case File:
		entry.Original, err = c.copyFile(name)
	case Dir:
		err = c.to.Mkdir(name, info.Mode().Perm()|0o700)
	case Link:
		if entry.Target, err = c.from.Readlink(name); err == nil {
			err = c.to.Symlink(entry.Target, name)
		}
	default:
		c.list.Left = append(c.list.Left, name)
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just gone
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", path.Join(c.list.Original, name), err)
	}
	c.list.Entries[name] = entry
	return nil
}

// copyFile copies a file's content, its right to be executed, and its time, which build tools
// look at. The stamp is of the file that was read.
func (c *copier) copyFile(name string) (Stamp, error) {
	from, err := c.from.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Stamp{}, err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return Stamp{}, errors.Join(err, errChanged)
	}
	to, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return Stamp{}, err
	}
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) != nil { // other file systems can't
		err = copyData(to, from, info.Size())
	}
	err = errors.Join(err, to.Close(), c.to.Chtimes(name, info.ModTime(), info.ModTime()))
	return stampOf(info), err
}

// copyData copies a file of so many bytes and leaves its holes out: a file that only says that it is long takes
// nothing of the disk, here or there. Where holes are not told of, all of it is data. Of a file that has grown since then
// the rest is left out, and one that became shorter, or is so, has what there is.
func copyData(to, from *os.File, size int64) error {
	for at := int64(0); at < size; {
		begin, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // the rest is a hole, or there is none any more
			now, err := from.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			size = min(size, now)
			break
		}
		end := size
		if err != nil {
			begin = at
		} else if end, err = from.Seek(begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		if begin, end = min(begin, size), min(end, size); begin == end {
			break
		}
		if _, err := from.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := to.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		n, err := io.Copy(to, io.LimitReader(from, end-begin))
		if err != nil {
			return err
		}
		if at = begin + n; at < end {
			size = at
		}
	}
	return to.Truncate(size)
}

var errChanged = errors.New("it was changed while it was read")

// stamps notes how the copy is, once nothing in it is written any more.
func (c *copier) stamps() error {
	for name, entry := range c.list.Entries {
		info, err := c.to.Lstat(name)
		if err != nil {
			return err
		}
		entry.Copy = stampOf(info)
		c.list.Entries[name] = entry
	}
	return nil
}
