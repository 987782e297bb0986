// Package treewalk looks through directories in which somebody may have made anything who isn't trusted, and
// may go on making it meanwhile: a sandbox that has the directory read-write.
//
// It differs from fs.WalkDir over an os.Root in what that somebody decides there. A directory is opened from
// the one that it is in, by its descriptor, so that a deep tree costs no more than a wide one. Names are read in parts. Nothing is
// opened that isn't a directory, so that a named pipe in a directory's place keeps nobody waiting. There
// are bounds, and it ends with its context.
package treewalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// readAtOnce is how many names of a directory are held at a time. All directories on the way hold their part, so that it bounds
// with Bounds.Depth what names take: some 17 MB with names as long as they may be.
const readAtOnce = 256

// longestPath is how long a path may be: a longer one can't be named to the kernel, and who makes it means no good.
const longestPath = unix.PathMax - 1

// Bounds are how much is looked at.
type Bounds struct {
	// Entries are how many names there may be, the beginning not counted.
	Entries int
	// Depth is how many directories may lie in each other below the beginning. Each of them is open while what is
	// below it is looked at.
	Depth int
	// Names are how many bytes the paths of all entries may have, as they are told.
	Names int
}

// Usual are the bounds of most who look through a tree, which no project comes near.
func Usual() Bounds { return Bounds{Entries: 500_000, Depth: 200, Names: 256 << 20} }

// BoundError is of a tree that is larger than may be looked at.
type BoundError struct {
	// Has says what it has, after its name, and where, as far as that is one place: "has more than 500000 entries",
	// "has more than 200 directories in each other in "build"".
	Has string
}

func (e *BoundError) Error() string { return "the directory " + e.Has }

// Walk looks through a directory, beginning at a relative name in it ("." is itself), through which it
// follows no link. It calls visit as fs.WalkDir does, with names relative to the directory, parents before what is in them,
// and fs.SkipDir and fs.SkipAll mean the same. The order is none: names are sorted within a part of a
// directory, so that a small one has them all sorted.
//
// An error of visit's ends it, and so does the context, with its cause, and a bound, with a
// *BoundError. A name that is no directory any more when it is to be opened is visited once more,
// with the error: fs.ErrNotExist or unix.ENOTDIR. The entries' Info is of the moment in which it's
// called, and only while visit has them.
func Walk(ctx context.Context, dir *hostpath.Path, at string, b Bounds, visit fs.WalkDirFunc) error {
	w := &walker{visit: visit, left: b, bounds: b}
	begin, err := dir.Below(at, hostpath.Identity{})
	if err != nil {
		return endError(visit(at, nil, err))
	}
	defer begin.Close()
	return w.walkFrom(ctx, begin.Fd(), at)
}

// WalkRoot walks, as Walk does, for a caller that has a root of the directory, all of which it looks through.
func WalkRoot(ctx context.Context, root *os.Root, b Bounds, visit fs.WalkDirFunc) error {
	return WalkRootAt(ctx, root, ".", b, visit)
}

// WalkRootAt walks, as WalkRoot does, and begins at a directory below the root's, to which it follows no link.
func WalkRootAt(ctx context.Context, root *os.Root, at string, b Bounds, visit fs.WalkDirFunc) error {
	w := &walker{visit: visit, left: b, bounds: b}
	begin, err := openBelow(root, at)
	if err != nil {
		return endError(visit(at, nil, err))
	}
	defer unix.Close(begin) //nolint:errcheck // nothing was written to it
	return w.walkFrom(ctx, begin, at)
}

// openBelow opens a directory below a root name by name: a root itself follows the links in it.
func openBelow(root *os.Root, at string) (int, error) {
	if !filepath.IsLocal(at) {
		return -1, &fs.PathError{Op: "open", Path: at, Err: fs.ErrInvalid}
	}
	top, err := root.Open(".")
	if err != nil {
		return -1, err
	}
	defer top.Close()
	fd, err := openDir(int(top.Fd()), ".")
	for name := range strings.SplitSeq(path.Clean(at), "/") {
		if err != nil {
			break
		}
		above := fd
		fd, err = openDir(above, name)
		_ = unix.Close(above)
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	return fd, nil
}

// walker is one walk.
type walker struct {
	visit  fs.WalkDirFunc
	bounds Bounds
	left   Bounds // of Entries and Names
}

// walkFrom looks at the beginning, which is open, and through it.
func (w *walker) walkFrom(ctx context.Context, fd int, at string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	info, err := os.Stat(procName(fd))
	if err != nil {
		return endError(w.visit(at, nil, err))
	}
	d := walkStart{fs.FileInfoToDirEntry(info), path.Base(at)}
	if err := w.visit(at, d, nil); err != nil || !info.IsDir() {
		return endError(err)
	}
	err = w.enterDir(ctx, fd, ".", at, d, 0)
	if errors.Is(err, fs.SkipDir) {
		return nil
	}
	return endError(err)
}

// enterDir looks through a directory that has a name in an open one.
func (w *walker) enterDir(ctx context.Context, in int, base, at string, d fs.DirEntry, depth int) error {
	fd, err := openDir(in, base)
	if err != nil {
		return w.visit(at, d, &fs.PathError{Op: "open", Path: at, Err: err})
	}
	// Its name is the descriptor's, by which its entries are looked at.
	dir := os.NewFile(uintptr(fd), procName(fd))
	defer dir.Close()
	for {
		part, err := dir.ReadDir(readAtOnce)
		slices.SortFunc(part, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
		for _, one := range part {
			if err := w.visitEntry(ctx, fd, at, one, depth); err != nil {
				return err // fs.SkipDir of something that is no directory: the rest of this one
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return w.visit(at, d, withName(at, err))
		}
	}
}

// visitEntry looks at one name of a directory.
func (w *walker) visitEntry(ctx context.Context, in int, at string, d fs.DirEntry, depth int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	name := path.Join(at, d.Name())
	if err := w.countEntry(name, d.IsDir(), depth); err != nil {
		return err
	}
	err := w.visit(name, d, nil)
	if err == nil && d.IsDir() {
		err = w.enterDir(ctx, in, d.Name(), name, d, depth+1)
	}
	if errors.Is(err, fs.SkipDir) && d.IsDir() {
		return nil
	}
	return err
}

func (w *walker) countEntry(name string, isDir bool, depth int) error {
	w.left.Entries--
	w.left.Names -= len(name)
	switch {
	case w.left.Entries < 0:
		return &BoundError{fmt.Sprintf("has more than %d entries", w.bounds.Entries)}
	case w.left.Names < 0:
		return &BoundError{fmt.Sprintf("has paths of more than %d MiB in it", w.bounds.Names>>20)}
	case len(name) > longestPath:
		return &BoundError{fmt.Sprintf("has paths of more than %d bytes in %s", longestPath, topName(name))}
	case isDir && depth >= w.bounds.Depth:
		return &BoundError{fmt.Sprintf("has more than %d directories in each other in %s", w.bounds.Depth, topName(name))}
	}
	return nil
}

// topName is the first part of a name, by which a person finds the rest: whoever made it chose it, so that it is quoted.
func topName(name string) string {
	first, _, _ := strings.Cut(name, "/")
	return strconv.Quote(first)
}

// openDir opens a directory that has a name in another, and nothing else that may have it by now.
func openDir(in int, base string) (int, error) {
	for {
		fd, err := unix.Openat(in, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// procName is a name of an open file in this process alone.
func procName(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// withName is an error with a name in the place of a descriptor's.
func withName(at string, err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: of.Op, Path: at, Err: of.Err}
	}
	if of, ok := errors.AsType[*os.SyscallError](err); ok {
		return &fs.PathError{Op: of.Syscall, Path: at, Err: of.Err}
	}
	return err
}

// endError returns what a walk says in the end: that visit wanted no more is no error.
func endError(err error) error {
	if errors.Is(err, fs.SkipDir) || errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// walkStart is the entry of where a walk begins.
type walkStart struct {
	fs.DirEntry

	name string
}

func (b walkStart) Name() string { return b.name }
