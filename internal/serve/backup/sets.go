package backup

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// setTries is how often a set is looked at that changes while it is opened.
const setTries = 50

// set is a directory that is copied as it was at one moment, or not at all: each file is open, so
// that it stays though its name goes, and has the length that it had.
type set struct{ entries []member }

type member struct {
	name string
	info fs.FileInfo
	file *os.File // nil: no file
	size int64
}

func (s set) closeFiles() {
	for _, m := range s.entries {
		if m.file != nil {
			_ = m.file.Close() // nothing was written to it
		}
	}
}

// identity is by what an entry is known again.
type identity struct {
	dev, ino uint64
	mode     fs.FileMode
}

func identityOf(info fs.FileInfo) identity {
	id := identity{mode: info.Mode().Type()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino = uint64(st.Dev), st.Ino //nolint:unconvert // Dev has another type elsewhere
	}
	return id
}

// openSet opens all that is below a directory, but what is not wanted, so that no name came,
// went or changed hands between the moment in which the lengths were read and the first look. rank (may be
// nil) orders the reading of lengths. fs.ErrNotExist: it is not there, or goes.
func openSet(ctx context.Context, state *hostpath.Path, at string, unwanted func(name string) bool, rank func(name string) int) (set, error) {
	for range setTries {
		s, err := openOnce(ctx, state, at, unwanted, rank)
		if err == nil {
			var now map[string]identity
			if now, err = namesOf(ctx, state, at, unwanted); err == nil && maps.Equal(now, s.listNames()) {
				return s, nil
			}
		}
		s.closeFiles()
		is, there := state.Below(at, hostpath.Identity{})
		if there != nil || err != nil && !isGone(err) {
			return set{}, errors.Join(there, err)
		}
		is.Close()
	}
	return set{}, fault.New(fault.ErrConflict, "%s in the state directory changes all the time; begin the backup again", at)
}

func (s set) listNames() map[string]identity {
	names := map[string]identity{}
	for _, m := range s.entries {
		names[m.name] = identityOf(m.info)
	}
	return names
}

// walkSet tells all entries that are wanted; one that goes meanwhile is fs.ErrNotExist.
func walkSet(ctx context.Context, state *hostpath.Path, at string, unwanted func(string) bool, visit func(name string, info fs.FileInfo) error) error {
	return treewalk.Walk(ctx, state, at, bounds(), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if unwanted(name) {
			return skipEntry(d)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return visit(name, info)
	})
}

func namesOf(ctx context.Context, state *hostpath.Path, at string, unwanted func(string) bool) (map[string]identity, error) {
	names := map[string]identity{}
	err := walkSet(ctx, state, at, unwanted, func(name string, info fs.FileInfo) error {
		names[name] = identityOf(info)
		return nil
	})
	return names, err
}

func openOnce(ctx context.Context, state *hostpath.Path, at string, unwanted func(string) bool, rank func(string) int) (s set, err error) {
	err = walkSet(ctx, state, at, unwanted, func(name string, info fs.FileInfo) error {
		m := member{name: name, info: info}
		if info.Mode().IsRegular() {
			found, err := state.Below(name, hostpath.Identity{})
			if err != nil {
				return err
			}
			defer found.Close()
			if m.file, err = found.Reader(); err != nil {
				return err
			}
		}
		s.entries = append(s.entries, m)
		return nil
	})
	if rank != nil {
		slices.SortStableFunc(s.entries, func(a, b member) int { return rank(a.name) - rank(b.name) })
	}
	for i := range s.entries {
		m := &s.entries[i]
		if m.file == nil || err != nil {
			continue
		}
		if m.info, err = m.file.Stat(); err == nil {
			m.size = m.info.Size()
		}
	}
	return s, err
}

// copySets copies each directory that lies so deep below a part as a set.
func (b *writer) copySets(ctx context.Context, part string, depth int, copied *[]string) error {
	if slices.Contains(b.out, part) {
		return nil // it is not wanted, or a link
	}
	if to, err := b.target(part); err != nil || to != "" {
		return errors.Join(err, b.elsewhere(part, to))
	}
	var found []string
	var links []member
	err := walkSet(ctx, b.state, part, b.isWork, func(name string, info fs.FileInfo) error {
		below := strings.Count(name, "/")
		switch {
		case below < depth && info.IsDir():
			return nil
		case info.IsDir():
			found = append(found, name)
			return fs.SkipDir
		case info.Mode()&fs.ModeSymlink != 0:
			links = append(links, member{name: name, info: info})
		}
		return nil
	})
	if err != nil && !isGone(err) {
		return b.walked(part, err)
	}
	has := func(name string) bool { return b.seen[name] }
	found = slices.DeleteFunc(found, has)
	links = slices.DeleteFunc(links, func(l member) bool { return has(l.name) })
	for _, at := range found {
		if err := b.copySet(ctx, at, copied); err != nil {
			return err
		}
	}
	for _, l := range links {
		if err := b.pointer(ctx, l, copied); err != nil {
			return err
		}
	}
	return nil
}

// pointer copies a link, and the set that it leads to, which may have come meanwhile.
func (b *writer) pointer(ctx context.Context, l member, copied *[]string) error {
	to, err := b.target(l.name)
	if err != nil || to == "" {
		return err
	}
	at := path.Join(path.Dir(l.name), to)
	if !b.seen[at] {
		if err := b.copySet(ctx, at, copied); err != nil {
			return err
		}
	}
	if !b.seen[at] {
		return fault.New(fault.ErrConflict, "%s in the state directory changed while it was copied; begin the backup again", path.Dir(l.name))
	}
	return b.header(l.name, l.info, to, 0)
}

// elsewhere copies a part that is a link as that, without what it leads to.
func (b *writer) elsewhere(part, to string) error {
	is, err := os.Lstat(filepath.Join(b.state.Proc(), part))
	if err != nil || to == "" {
		return err
	}
	b.out = append(b.out, part)
	return b.header(part, is, to, 0)
}

// isWork tells whether a name is of what is being made or removed.
func (b *writer) isWork(name string) bool { return strings.HasPrefix(path.Base(name), ".") }

// copySet copies one directory, or nothing of it if it is removed meanwhile.
func (b *writer) copySet(ctx context.Context, at string, copied *[]string) error {
	// Within a template's tree names may begin with a dot.
	unwanted := func(name string) bool { return strings.Count(name, "/") == strings.Count(at, "/")+1 && b.isWork(name) }
	s, err := openSet(ctx, b.state, at, unwanted, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unread(at, err)
	}
	defer s.closeFiles()
	if err := b.writeSet(ctx, s); err != nil {
		return err
	}
	_, id, _ := strings.Cut(at, "/")
	*copied = append(*copied, id)
	return nil
}

func (b *writer) writeSet(ctx context.Context, s set) error {
	for _, m := range s.entries {
		if err := b.copyParents(m.name); err != nil {
			return err
		}
		var err error
		switch {
		case m.file != nil:
			err = b.copyFile(ctx, m.name, m.file, m.size)
		case m.info.IsDir():
			err = b.header(m.name, m.info, "", 0)
		case m.info.Mode()&fs.ModeSymlink != 0:
			err = b.copyLink(m.name, m.info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyLog copies the audit log, up to its last whole record.
func (b *writer) copyLog(ctx context.Context) error {
	dir := path.Base(b.options.Paths.Audit())
	s, err := openSet(ctx, b.state, dir, func(name string) bool { return name != dir && audit.IsWork(path.Base(name)) }, func(name string) int { return audit.CopyRank(path.Base(name)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unread(dir, err)
	}
	defer s.closeFiles()
	for i := range s.entries {
		m := &s.entries[i]
		if m.file == nil {
			continue
		}
		if m.size, err = audit.WholeLines(path.Base(m.name), m.file, m.size); err != nil {
			return unread(m.name, err)
		}
	}
	return b.writeSet(ctx, s)
}
