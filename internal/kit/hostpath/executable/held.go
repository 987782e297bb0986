package executable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Held is a program of the host that is looked at once and started many times, also by other processes, which
// know it by a name and may outlive this one: so that no descriptor of this one will do. It is given a second name in a directory that
// no sandbox is ever given to write to, by the descriptor that was looked at. Safe for concurrent use.
type Held struct {
	path     string
	dir      string
	writable func() []hostpath.Tree

	mu   sync.Mutex // guards what follows
	is   version
	name string
}

// version tells what was looked at from what has its name later, also from the same file that somebody has written
// to: of that a second name would show what it is now, and a copy what it was.
type version struct {
	hostpath.Identity
	size           int64
	written, moved int64 // its times of modification and of change, in nanoseconds since 1970
}

func versionOf(found *hostpath.Path) (version, error) {
	var st unix.Stat_t
	if err := unix.Fstat(found.Fd(), &st); err != nil {
		return version{}, err
	}
	return version{found.ID, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// Hold is for the program at an absolute path. dir is a directory of the installation's own, which is made; "": it gets
// no second name. writable are the directories in which sandboxes may write, or could; nil: there are none.
func Hold(path, dir string, writable func() []hostpath.Tree) *Held {
	return &Held{path: path, dir: dir, writable: writable}
}

// Path is what the program is known by.
func (h *Held) Path() string { return h.path }

// Name is what to start the program by. One that somebody has put in the place of the one that is held, or has written to it, is taken
// from then on, if no sandbox could have done so; otherwise the one that is held stays, if it is another file. It is
// fault.ErrUnavailable if there is none, and fault.ErrForbidden if a sandbox could have written it.
func (h *Held) Name() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found, err := hostpath.Resolve(h.path, nil)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the program %s is missing", h.path)
	}
	defer found.Close()
	now, err := versionOf(found)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the program %s can't be looked at", h.path)
	}
	pinned := h.name != "" && h.name != h.path && unix.Access(h.name, unix.X_OK) == nil // somebody may have cleared the directory
	if pinned && h.is == now {
		return h.name, nil
	}
	err = h.checkProgram(found)
	switch {
	case errors.Is(err, fault.ErrForbidden) && pinned && h.is.Identity != now.Identity:
		return h.name, nil
	case err != nil:
		return "", err
	}
	return h.keepProgram(found)
}

// keepProgram has the program that was looked at be the one that is held.
func (h *Held) keepProgram(found *hostpath.Path) (_ string, err error) {
	h.name = h.path
	if h.dir != "" {
		h.name, err = h.pinProgram(found)
	}
	if err == nil {
		h.is, err = versionOf(found) // a second name is a change
	}
	if err != nil {
		h.name = ""
		return "", fault.Wrap(fault.ErrUnavailable, err, "the program %s can't be kept in %s", h.path, h.dir)
	}
	return h.name, nil
}

// checkProgram refuses what is no program, and what a sandbox could have written.
func (h *Held) checkProgram(found *hostpath.Path) error {
	if found.ID.Type != hostpath.File || unix.Access(found.Proc(), unix.X_OK) != nil {
		return fault.New(fault.ErrUnavailable, "%s is not an executable file", h.path)
	}
	if h.writable == nil {
		return nil
	}
	lookup, err := hostpath.NewLookup(h.writable())
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "where %s lies can't be looked at", h.path)
	}
	for _, name := range []string{h.path, found.Name} {
		if tree, theirs := lookup.Within(name); theirs {
			return fault.New(fault.ErrForbidden, "the program %s lies under %s, where a sandbox may write, or could, so it is not run: %s", h.path, tree.Path, MoveOwn)
		}
	}
	return nil
}

// MoveOwn says what to do about a program that Cofferdam itself needs where a sandbox could write.
const MoveOwn = "move it elsewhere and name that in the configuration, or install Cofferdam elsewhere, as with `uv tool install cofferdam` or `pipx install cofferdam`"

// oldPins is how long another version's name is kept: somebody may be about to start it.
const oldPins = 24 * time.Hour

// pinProgram gives what is open its second name. Where that could not be started, because the directory's file system
// does not allow it, the program is started by its own.
func (h *Held) pinProgram(found *hostpath.Path) (name string, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(found.Fd(), &st); err != nil {
		return "", err
	}
	at := filepath.Join(h.dir, fmt.Sprintf("%x-%x-%x-%x-%x", st.Dev, st.Ino, found.ID.Birth, st.Size, st.Mtim.Nano()))
	name = filepath.Join(at, filepath.Base(h.path))
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", err
	}
	_ = os.Chtimes(at, time.Time{}, time.Now()) // at worst it is made again
	// Another daemon may have made it, or make it now.
	err = unix.Linkat(unix.AT_FDCWD, found.Proc(), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		if err := copyTo(found, name); err != nil { // of another file system, or another user's
			return "", err
		}
	}
	h.dropOld(at)
	if starts := unix.Access(name, unix.X_OK) == nil; !starts {
		return h.path, nil
	}
	return name, nil
}

// copyTo copies a program, whole or not at all.
func copyTo(found *hostpath.Path, name string) error {
	from, err := found.Reader()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(name), "new-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	err = errors.Join(err, to.Chmod(0o755), to.Sync(), to.Close())
	if err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return nil
}

// dropOld removes names of other versions.
func (h *Held) dropOld(but string) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(h.dir, e.Name())
		if info, err := e.Info(); err == nil && path != but && time.Since(info.ModTime()) > oldPins {
			_ = os.RemoveAll(path) // the next one tries again
		}
	}
}
