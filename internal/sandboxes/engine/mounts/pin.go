package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Alone puts this thread into a mount namespace of its own, of which no mount leaves.
func Alone() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	return nil
}

// Pins are an instance's mounts of paths of the host, each laid at a place of its own,
// for a program that mounts by name. They belong in a mount namespace that nobody else has:
// so they need no cleaning up, and nobody removes anything through them.
type Pins struct {
	Mounts []engine.Mount
	// At is the place of a mount, by its index, in a directory that is there.
	At func(n int) string
	// Empty is an empty directory.
	Empty string
	// Attributes are what a mount has that is laid, beside what it is shown with; nil: nothing.
	Attributes func(m engine.Mount) unix.MountAttr
	// Elsewhere tells of what hides something in a mount that is not among these, and is laid where its
	// place is here as well; nil: nothing does.
	Elsewhere func(n int) bool
	// Owners says how those of a mount are translated, by what it shows at its root; nil: they stay.
	Owners func(root unix.Stat_t) Translation
}

// Pin opens every source, refuses what is not what was checked (fault.ErrConflict), and
// lays it at its place. What lies over a part of another mount of the host is laid over
// that part as well, by descriptors: so that it covers that part even if the program that
// mounts by name is led elsewhere by whoever may write to the other mount.
func (p Pins) Pin() error {
	var nested []int
	for n, m := range p.Mounts {
		if m.Source != "" {
			if err := p.layPin(n); err != nil {
				return err
			}
		}
		if m.Around.IsZero() && (m.Source != "" || m.ReadOnly) {
			nested = append(nested, n)
		}
	}
	if err := p.checkLaid(); err != nil {
		return err
	}
	for n, m := range p.Mounts {
		if !m.Around.IsZero() {
			if err := p.hidePaths(n); err != nil {
				return err
			}
		}
	}
	// The innermost first: what is laid over another's part has what lies over its own.
	slices.SortStableFunc(nested, func(a, b int) int {
		return len(p.Mounts[b].Destination) - len(p.Mounts[a].Destination)
	})
	for _, n := range nested {
		outers := p.outers(n)
		if len(outers) == 0 {
			continue
		}
		if err := p.coverPlace(n, outers[0]); err != nil {
			return err
		}
	}
	return nil
}

// checkLaid refuses what has come with a source, mounted below it, and belongs to the host's kernel: when the source was checked it may
// not have been there. It looks at what was laid, which nothing comes into any more.
func (p Pins) checkLaid() error {
	table, err := hostpath.ReadTable()
	if err != nil {
		return err
	}
	for n, m := range p.Mounts {
		if m.Source == "" {
			continue
		}
		at, err := hostpath.Follow(p.At(n)) // by the name that the table has
		if err != nil {
			return err
		}
		at.Close()
		for _, shown := range table.Shown(at.Name) {
			if shown.IsKernels() {
				return fault.New(fault.ErrConflict, "%s, which is to be shown at %s, has a file system of the host's kernel in it by now (%s at %s); unmount it there, or make a sandbox without that directory", m.Source, m.Destination, shown.Type, filepath.Join(m.Source, strings.TrimPrefix(shown.At, at.Name)))
			}
		}
	}
	return nil
}

// layPin shows a mount's source at its own place.
func (p Pins) layPin(n int) error {
	var attributes unix.MountAttr
	if p.Attributes != nil {
		attributes = p.Attributes(p.Mounts[n])
	}
	return Show(p.Mounts[n], p.At(n), attributes, p.Owners)
}

// Show opens a mount's source, refuses it if it is not what was checked
// (fault.ErrConflict), and lays it at a place, which it makes, with what is mounted below
// it. owners says how they are translated, by what was opened; nil: they stay.
func Show(m engine.Mount, at string, attributes unix.MountAttr, owners func(root unix.Stat_t) Translation) error {
	source, err := m.Open()
	if err != nil {
		return err
	}
	defer source.Close()
	if err := place(at, source.ID.Type); err != nil {
		return err
	}
	var t Translation
	if owners != nil {
		var root unix.Stat_t
		if err := unix.Fstat(source.Fd(), &root); err != nil {
			return err
		}
		t = owners(root)
	}
	tree, err := copyOf(source.Fd(), "", unix.AT_RECURSIVE, attributes, t)
	if err != nil && t.IfReadable && m.ReadOnly {
		tree, err = copyOf(source.Fd(), "", unix.AT_RECURSIVE, attributes, Translation{})
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", m.Source, err)
	}
	defer unix.Close(tree) //nolint:errcheck // nothing was written to it
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// place makes what a mount lies over; one of an earlier start may be there.
func place(at string, of hostpath.Type) error {
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if of == hostpath.Dir {
		return os.Mkdir(at, 0o700)
	}
	return os.WriteFile(at, nil, 0o600)
}

// outer is a mount of the host over whose part another lies.
type outer struct {
	n     int
	below string // where in it
}

// outers are those over whose part a mount lies, the innermost first; none beyond one in
// memory.
func (p Pins) outers(n int) []outer {
	var all []outer
	for i, m := range p.Mounts {
		if rest, ok := strings.CutPrefix(p.Mounts[n].Destination, m.Destination+"/"); ok && i != n {
			all = append(all, outer{n: i, below: rest})
		}
	}
	slices.SortStableFunc(all, func(a, b outer) int { return len(a.below) - len(b.below) })
	if memory := slices.IndexFunc(all, func(o outer) bool { return p.Mounts[o.n].Source == "" }); memory >= 0 {
		all = all[:memory]
	}
	return all
}

// hidePaths covers what is hidden: in the directory in which it was, which must be in its place,
// and in others that are shown there instead.
func (p Pins) hidePaths(n int) error {
	m, found := p.Mounts[n], false
	for _, o := range p.outers(n) {
		root, err := hostpath.Follow(p.At(o.n))
		if err != nil {
			return err
		}
		parent, err := root.Below(filepath.Dir(o.below), m.Around)
		root.Close()
		if err == nil {
			parent.Close()
			found = true
		}
		if err := p.coverPlace(n, o); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if !found && (p.Elsewhere == nil || !p.Elsewhere(n)) {
		return m.Unhidden()
	}
	return nil
}

// coverPlace lays a mount over its place in an outer one.
func (p Pins) coverPlace(n int, o outer) error {
	m := p.Mounts[n]
	root, err := hostpath.Follow(p.At(o.n))
	if err != nil {
		return err
	}
	defer root.Close()
	at, err := root.Below(o.below, hostpath.Identity{})
	if err != nil {
		return fault.Wrap(fault.ErrConflict, err, "%s lies in the mount %s, and its place there is not what it was", m.Destination, p.Mounts[o.n].Source)
	}
	defer at.Close()
	over, attributes := p.Empty, unix.MountAttr{}
	if m.Source != "" {
		over = p.At(n)
	}
	if m.ReadOnly {
		attributes.Attr_set = unix.MOUNT_ATTR_RDONLY
	}
	tree, err := copyOf(unix.AT_FDCWD, over, unix.AT_RECURSIVE, attributes, Translation{})
	if err != nil {
		return err
	}
	defer unix.Close(tree) //nolint:errcheck // nothing was written to it
	if err := unix.MoveMount(tree, "", at.Fd(), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("lay %s over its place in %s: %w", m.Destination, p.Mounts[o.n].Source, err)
	}
	return nil
}
