package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Points makes what mounts lie over in other mounts, if it is not there: in a sandbox's own
// files the container's runtime makes them, and in the host's nobody inside may. They are the
// owner's where the owner could make them.
//
// A sandbox that has the outer mount read-write elsewhere may change it meanwhile. So all goes by
// descriptors, no link is followed, nothing that is there is opened to be written or given to
// anybody, and what takes a place that was not there is a fault.ErrConflict if it isn't of the kind
// that was to be made there, as another sandbox's place is.
func Points(spec engine.Spec) error {
	for _, inner := range spec.Mounts {
		outer, below := outerOf(spec.Mounts, inner)
		if outer.Source == "" {
			continue
		}
		if err := mountPoint(outer, below, inner, spec.Owner); err != nil {
			return fmt.Errorf("make a place for %s in %s: %w", inner.Destination, outer.Source, err)
		}
	}
	return nil
}

// outerOf is the innermost other mount that has the place of one, and where in it.
func outerOf(mounts []engine.Mount, inner engine.Mount) (outer engine.Mount, below string) {
	for _, m := range mounts {
		rest, ok := strings.CutPrefix(inner.Destination, m.Destination+"/")
		if ok && (below == "" || len(rest) <= len(below)) {
			outer, below = m, rest
		}
	}
	return outer, below
}

func mountPoint(outer engine.Mount, below string, inner engine.Mount, owner engine.Owner) error {
	opened, err := outer.Open()
	if err != nil {
		return err
	}
	defer opened.Close()
	there, err := opened.Below(below, hostpath.Identity{})
	if err == nil {
		there.Close()
	}
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.ErrConflict, err, "%s lies in the mount %s, and its place there is not what it was", inner.Destination, outer.Source)
	}
	kind := hostpath.Dir
	if inner.Source != "" {
		source, err := inner.Open()
		if err != nil {
			return err
		}
		source.Close()
		kind = source.ID.Type
	}
	var root unix.Stat_t
	if err := unix.Fstat(opened.Fd(), &root); err != nil {
		return err
	}
	return makePlace(opened, strings.Split(below, "/"), kind, ShownOwner(owner, root))
}

// makePlace makes what is not there of a way below a directory, at whose end is something of a type.
func makePlace(at *hostpath.Path, way []string, kind hostpath.Type, owner engine.Owner) error {
	if len(way) == 0 {
		return nil
	}
	want := hostpath.Identity{Type: hostpath.Dir}
	if len(way) == 1 {
		want.Type = kind
	}
	next, err := at.Below(way[0], want)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeOne(at, way[0], want.Type, owner); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		next, err = at.Below(way[0], want)
	}
	if err != nil {
		return movedAway(at, way[0], err)
	}
	defer next.Close()
	return makePlace(next, way[1:], kind, owner)
}

// makeOne makes a directory or an empty file: the owner's, or, where the owner may make none, this process's. Nothing that has a name is
// given to anybody, since somebody else might have put it there by then: that is fs.ErrExist.
func makeOne(at *hostpath.Path, name string, kind hostpath.Type, owner engine.Owner) error {
	err := hostpath.AsUser(owner.HostUID, owner.HostGID, func() error { return makeNew(at, name, kind) })
	if errors.Is(err, fs.ErrPermission) {
		err = makeNew(at, name, kind)
	}
	return err
}

func makeNew(at *hostpath.Path, name string, kind hostpath.Type) error {
	if kind == hostpath.Dir {
		if err := unix.Mkdirat(at.Fd(), name, 0o755); err != nil {
			return &fs.PathError{Op: "mkdir", Path: filepath.Join(at.Name, name), Err: err}
		}
		return nil
	}
	fd, err := unix.Openat(at.Fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &fs.PathError{Op: "create", Path: filepath.Join(at.Name, name), Err: err}
	}
	return unix.Close(fd)
}

func movedAway(at *hostpath.Path, name string, err error) error {
	return fault.Wrap(fault.ErrConflict, err, "%s was made or exchanged while a place for a mount was made there; try again", filepath.Join(at.Name, name))
}
