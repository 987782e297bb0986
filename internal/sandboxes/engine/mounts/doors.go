package mounts

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// NoDoors refuses mounts with sockets or named pipes in them. The host's kernel connects
// whoever may write to one with whoever listens on it, network namespace or not: a mounted
// folder with a container engine's socket is the host. A socket that the host puts there later is not seen.
func NoDoors(ctx context.Context, mounts []engine.Mount) error {
	for _, m := range mounts {
		if m.Source == "" || programs(m) {
			continue
		}
		door, err := firstDoor(ctx, m)
		bound, large := errors.AsType[*treewalk.BoundError](err)
		switch {
		case large:
			return fault.Invalid("%s %s, too much to look for sockets in it, which a container could connect to; mount less of it, or use the engine gvisor", m.Source, bound.Has)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fault.Wrap(fault.ErrInvalid, err, "%s can't be looked through for sockets, which a container could connect to", m.Source)
		case door != "":
			return fault.Invalid("%s is a socket or a named pipe, and what runs in a container could connect to whoever has it open on the host; mount a folder without it, or use the engine gvisor", door)
		}
	}
	return nil
}

// programs tells whether a mount is of the system's programs and libraries, where
// distributions have neither and nobody but root puts one.
func programs(m engine.Mount) bool {
	top, _, _ := strings.Cut(strings.TrimPrefix(m.Source, "/"), "/")
	switch top {
	case "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		return m.ReadOnly
	}
	return false
}

// firstDoor is the path of a socket or a named pipe; "" if there is none. A *treewalk.BoundError: too much
// would have to be looked at.
func firstDoor(ctx context.Context, m engine.Mount) (door string, err error) {
	source, err := m.Open()
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return m.Source, nil
	}
	if err != nil {
		return "", err
	}
	defer source.Close()
	if source.ID.Type == hostpath.File {
		return "", nil
	}
	err = treewalk.Walk(ctx, source, ".", treewalk.Usual(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && path != "." {
				return nil // it was there a moment ago
			}
			return err
		}
		if isDoor(entry.Type()) {
			door = filepath.Join(m.Source, path)
			return fs.SkipAll
		}
		return nil
	})
	return door, err
}

func isDoor(mode fs.FileMode) bool { return mode&(fs.ModeSocket|fs.ModeNamedPipe) != 0 }
