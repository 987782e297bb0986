package hostpath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

// Entry is a name in a directory, of a file that is there or is to be made. It is found once,
// and whoever writes it later writes in that directory, over that file, or not at all.
type Entry struct {
	Name string   // absolute, without links
	Dir  Identity // of the directory that it is in
	File Identity // of the file; zero: there is none
}

// ErrDangling is of a link to a name that nothing has: a stranger may choose with it where a file
// is made.
var ErrDangling = errors.New("it is a link that leads to nothing")

// Find finds a path's entry. It follows links as Resolve does, but for one at the path's end that
// leads to nothing, which it refuses. Anything there that is no file is a *TypeError; without
// its directory it is fs.ErrNotExist.
func Find(path string, trees []Tree) (Entry, error) {
	w, err := beginWalk(path, trees)
	if err != nil {
		return Entry{}, err
	}
	defer w.closeWalk()
	ending := false // the path's end is a link
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		target, err := w.stepTo(rest[0])
		last := strings.Join(rest[1:], "") == ""
		switch {
		case errors.Is(err, fs.ErrNotExist) && ending:
			return Entry{}, &fs.PathError{Op: "open", Path: path, Err: ErrDangling}
		case errors.Is(err, fs.ErrNotExist) && last:
			return w.entryAt(rest[0])
		case err != nil:
			return Entry{}, err
		}
		ending = ending || last && target != nil
		rest = append(target, rest[1:]...)
	}
	return w.entryAt("")
}

// entryAt is that of where the walk has led, or of a name there that nothing has.
func (w *pathWalk) entryAt(missing string) (e Entry, err error) {
	dir := w.placeHere()
	if missing == "" {
		e.Name = dir.name
		if e.File, err = identity(dir.fd, dir.stat); err != nil || e.File.Type != File || len(w.stack) < 2 {
			return Entry{}, &TypeError{Path: dir.name}
		}
		dir = w.stack[len(w.stack)-2]
	} else {
		e.Name = filepath.Join(dir.name, missing)
	}
	if e.Dir, err = identity(dir.fd, dir.stat); err != nil || e.Dir.Type != Dir {
		return Entry{}, &fs.PathError{Op: "open", Path: e.Name, Err: unix.ENOTDIR}
	}
	return e, nil
}

// openEntry opens the directory, if it still is that one.
func (e Entry) openEntry() (*Path, error) { return Open(filepath.Dir(e.Name), e.Dir) }

// Read reads the file, of at most a number of bytes, if it still is the one that was found.
func (e Entry) Read(most int64) ([]byte, error) {
	dir, err := e.openEntry()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return e.readIn(dir, most)
}

func (e Entry) readIn(dir *Path, most int64) ([]byte, error) {
	if e.File.IsZero() {
		return nil, &fs.PathError{Op: "open", Path: e.Name, Err: unix.ENOENT}
	}
	file, err := dir.Below(filepath.Base(e.Name), e.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.ReadFile(most)
}

// Create makes the file, whole and durably. It is fs.ErrExist if something has the name.
func (e Entry) Create(data []byte, mode fs.FileMode) error {
	dir, err := e.openEntry()
	if err != nil {
		return err
	}
	defer dir.Close()
	return withName(e.Name, atomicfile.Create(filepath.Join(dir.Proc(), filepath.Base(e.Name)), data, mode))
}

// CreateFrom creates, as Create does, a file that is too large to be held: write writes it, and its error is
// returned as it is. Nothing is left of a file that was not written whole.
func (e Entry) CreateFrom(mode fs.FileMode, write func(io.Writer) error) error {
	dir, err := e.openEntry()
	if err != nil {
		return err
	}
	defer dir.Close()
	return withName(e.Name, atomicfile.CreateFrom(filepath.Join(dir.Proc(), filepath.Base(e.Name)), mode, write))
}

// OpenFile opens the file with flags of os.OpenFile that say whether it is read or written, and
// makes it with a mode if none was found. One that was found must still be that one, and where none
// was nothing may have come, else it is a *ChangedError, a *LinkError or fs.ErrExist. Close it.
func (e Entry) OpenFile(flags int, mode fs.FileMode) (*os.File, error) {
	dir, err := e.openEntry()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if e.File.IsZero() {
		flags |= os.O_CREATE | os.O_EXCL
	}
	// A pipe in its place must not keep the caller waiting.
	file, err := os.OpenFile(filepath.Join(dir.Proc(), filepath.Base(e.Name)), flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
	if err != nil {
		return nil, refusal(e.Name, withName(e.Name, err))
	}
	if e.File.IsZero() {
		return file, nil
	}
	st, err := statFD(int(file.Fd()))
	if err == nil {
		var now Identity
		if now, err = identity(int(file.Fd()), st); err == nil && !e.File.Is(now) {
			err = &ChangedError{Path: e.Name}
		}
	}
	if err != nil {
		return nil, errors.Join(refusal(e.Name, err), file.Close())
	}
	return file, nil
}

// Replace writes the file anew, in one step and durably, with the mode and the owner of the one
// that was found. If another has its name it is a *ChangedError, or a *LinkError.
func (e Entry) Replace(data []byte) error {
	dir, err := e.openEntry()
	if err != nil {
		return err
	}
	defer dir.Close()
	file, err := dir.Below(filepath.Base(e.Name), e.File)
	if err != nil {
		return err
	}
	defer file.Close()
	return withName(e.Name, atomicfile.ReplaceLike(filepath.Join(dir.Proc(), filepath.Base(e.Name)), data))
}

// withName gives an error the name that people know, in the place of a descriptor's.
func withName(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: path.Op, Path: name, Err: path.Err}
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: link.Op, Path: name, Err: link.Err}
	}
	return err
}

// MakeDirs opens a directory, and makes it and those above it that are not there, with a mode
// less the umask. It follows links as Resolve does.
func MakeDirs(path string, mode fs.FileMode, trees []Tree) (*Path, error) {
	w, err := beginWalk(path, trees)
	if err != nil {
		return nil, err
	}
	defer w.closeWalk()
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		target, err := w.stepTo(rest[0])
		if errors.Is(err, fs.ErrNotExist) {
			if err := unix.Mkdirat(w.placeHere().fd, rest[0], uint32(mode.Perm())); err != nil && !errors.Is(err, unix.EEXIST) {
				return nil, &fs.PathError{Op: "mkdir", Path: filepath.Join(w.placeHere().name, rest[0]), Err: err}
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		rest = append(target, rest[1:]...)
	}
	p, err := w.endPath()
	if err == nil && p.ID.Type != Dir {
		p.Close()
		return nil, &fs.PathError{Op: "mkdir", Path: p.Name, Err: unix.ENOTDIR}
	}
	return p, err
}
