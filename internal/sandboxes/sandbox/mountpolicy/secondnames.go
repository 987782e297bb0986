package mountpolicy

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// checkSecondNames refuses a file that decides what runs may do, by its resolved path, if a read-write mount has another name of
// it: the guard covers the one, and the agent could rewrite the file by the other. A run that the file did not decide
// could have made a hard link; the host may have mounted the file, or a directory above it, elsewhere.
func checkSecondNames(ctx context.Context, mounts []Checked, table hostpath.Table, file string) error {
	path, err := hostpath.Open(file, hostpath.Identity{Type: hostpath.File})
	if err != nil {
		return fault.Invalid("%s can't be read any more", file)
	}
	defer path.Close()
	var st unix.Stat_t
	if err := unix.Fstat(path.Fd(), &st); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "how many names %s has can't be seen", file)
	}
	for _, m := range mounts {
		if !m.ReadWrite {
			continue
		}
		second, err := "", error(nil)
		if names := table.NamesUnder(file, m.Source); len(names) > 1 {
			second = names[1]
		} else if st.Nlink > 1 {
			second, err = linkIn(ctx, m, path, st.Ino)
		}
		if err != nil {
			return err
		}
		if second != "" {
			return fault.Invalid("%s, which decides what runs may do, has a second name under the read-write mount %s, where the agent could rewrite it: %s; look at what is in it, then remove that name, or mount that directory read-only", file, m.Source, second)
		}
	}
	return nil
}

// CheckGuards tells whether the files that decide what runs may do, over which guards lie in a sandbox's mounts, have
// second names by now under what it may write; a fault.ErrConflict if one has. own are Cofferdam's own programs, over which covers lie
// that look like guards.
func CheckGuards(ctx context.Context, all []engine.Mount, own []string) error {
	var written []Checked
	defer func() {
		for _, c := range written {
			c.Close()
		}
	}()
	for _, m := range all {
		if m.Source == "" || m.ReadOnly {
			continue
		}
		path, err := m.Open()
		if err != nil {
			return err
		}
		written = append(written, Checked{Mount{Source: path.Name, Destination: m.Destination, ReadWrite: true}, path})
	}
	table, err := hostpath.ReadTable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the host's table of mounts can't be read")
	}
	for _, m := range all {
		if len(written) == 0 || !m.ReadOnly || m.Origin != (hostpath.Identity{Type: hostpath.File}) || isOwnFile(m.Source, own) {
			continue
		}
		err := checkSecondNames(ctx, written, table, m.Source)
		if errors.Is(err, fault.ErrInvalid) {
			return fault.New(fault.ErrConflict, "the sandbox can't go on: %s", fault.Sentence(err, ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isOwnFile(file string, own []string) bool {
	return slices.ContainsFunc(own, func(program string) bool {
		resolved, _, err := hostpath.Links(program)
		return err == nil && resolved == file
	})
}

// linkIn is another name of a file in a mount; "": it has none there.
func linkIn(ctx context.Context, m Checked, file *hostpath.Path, inode uint64) (name string, err error) {
	if m.Origin().Type != hostpath.Dir {
		if m.Origin().Is(file.ID) && m.Source != file.Name {
			return m.Source, nil
		}
		return "", nil
	}
	search := linkSearch{in: m, file: file, inode: inode}
	err = treewalk.Walk(ctx, m.path, ".", lookedThrough(), search.visitEntry)
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return "", fault.Invalid("%s has more than one name, and to look for them the read-write mount %s is too large: it %s; remove the file's other names, or mount a smaller directory", file.Name, m.Source, bound.Has)
	}
	return search.found, err
}

// linkSearch looks in a mount for another name of a file.
type linkSearch struct {
	in    Checked
	file  *hostpath.Path
	inode uint64
	found string // "" so far
}

// visitEntry implements fs.WalkDirFunc.
func (s *linkSearch) visitEntry(rel string, d fs.DirEntry, err error) error {
	name := filepath.Join(s.in.Source, rel)
	if err != nil {
		return unlessGone(s.file, name, err)
	}
	if !d.Type().IsRegular() || name == s.file.Name {
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return unlessGone(s.file, name, err)
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); !ok || sys.Ino != s.inode {
		return nil
	}
	this, err := s.in.path.Below(rel, s.file.ID)
	if err != nil { // a hostpath.ChangedError is another file system's with that number
		return unlessGone(s.file, name, err)
	}
	this.Close()
	s.found = name
	return fs.SkipAll
}

// unlessGone is the refusal for a name that can't be looked at; nil if it is gone, or another kind of thing by now. That this user
// may not look is no such reason: who owns the directory may change that, from inside too.
func unlessGone(file *hostpath.Path, name string, err error) error {
	_, isLink := errors.AsType[*hostpath.LinkError](err)
	_, isOther := errors.AsType[*hostpath.TypeError](err)
	_, isChanged := errors.AsType[*hostpath.ChangedError](err)
	if isLink || isOther || isChanged || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return fault.Invalid("%s has more than one name, and whether %s is one can't be seen: %v; remove its other names, or mount that directory read-only", file.Name, name, err)
}
