package gvisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

// How large a top-level directory of a directory root may be to be copied for
// each sandbox. A copy is writable, has the right owners, and can be given
// mount points without a write to the template. A larger directory is shown read-only instead; an image has no such difference.
const (
	skeletonEntries = 3000
	skeletonBytes   = 16 << 20
)

// skeleton copies one directory root.
type skeleton struct {
	from, to string
	ids      identity.Identity
}

// copySkeleton copies what is small of the template's tree, with its owners as
// the sandbox will see them, makes the mount points, and returns the mounts
// that show the rest.
func copySkeleton(spec engine.Spec, ids identity.Identity, to string) ([]engine.Mount, error) {
	s := &skeleton{from: spec.Root.Path, to: to, ids: ids}
	top, err := os.ReadDir(s.from)
	if err != nil {
		return nil, err
	}
	var shown []engine.Mount
	for _, entry := range top {
		path := filepath.Join(s.from, entry.Name())
		if entry.IsDir() && isLarge(path) {
			shown = append(shown, engine.Mount{Source: path, Destination: "/" + entry.Name(), ReadOnly: true})
			continue
		}
		if err := filepath.WalkDir(path, s.copyEntry); err != nil {
			return nil, err
		}
	}
	points := slices.Concat(shown, spec.Mounts)
	for _, dir := range []string{"/proc", "/dev/shm", "/sys", "/run", "/tmp", "/.cofferdam"} {
		points = append(points, engine.Mount{Destination: dir})
	}
	for _, m := range points {
		if err := s.mountPoint(m, shown); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// isLarge tells whether a tree is past the limits, without looking at much more
// of it than that.
func isLarge(dir string) bool {
	entries, bytes := 0, int64(0)
	past := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // Copying it will tell.
		}
		entries++
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if entries > skeletonEntries || bytes > skeletonBytes {
			return fs.SkipAll
		}
		return nil
	})
	return past == nil && (entries > skeletonEntries || bytes > skeletonBytes)
}

func (s *skeleton) copyEntry(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	target := filepath.Join(s.to, strings.TrimPrefix(path, s.from))
	switch {
	case info.IsDir():
		if err := os.MkdirAll(target, info.Mode().Perm()); err != nil {
			return err
		}
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if err := os.Symlink(link, target); err != nil {
			return err
		}
		return s.chownCopy(path, target)
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
	default:
		return fault.Invalid("%s is neither a file, a directory nor a link; a root can't have it", path)
	}
	// Sticky and set-id bits are not made by the calls above, nor is what the
	// umask takes away.
	if err := os.Chmod(target, info.Mode()&(fs.ModePerm|fs.ModeSticky)); err != nil {
		return err
	}
	return s.chownCopy(path, target)
}

// chownCopy gives the copy the host ids that the sandbox sees as the template's.
func (s *skeleton) chownCopy(path, target string) error {
	if os.Geteuid() != 0 {
		return nil // All is the user's own, and stays so.
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	return os.Lchown(target, identity.HostID(s.ids.UIDs, st.Uid), identity.HostID(s.ids.GIDs, st.Gid))
}

// mountPoint makes what a mount is laid over, a file for a file. The path is
// resolved inside the copy, whose links may point anywhere. Below what is shown
// read-only, the template must have it.
func (s *skeleton) mountPoint(m engine.Mount, shown []engine.Mount) error {
	for _, over := range shown {
		if !strings.HasPrefix(m.Destination, over.Destination+"/") {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.from, m.Destination)); err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "nothing can be mounted at %s: the template's %s is shown read-only and has no such place; use an image, or mount elsewhere", m.Destination, over.Destination)
		}
		return nil
	}
	isFile := false
	if m.Source != "" {
		source, err := m.Open()
		if err != nil {
			return err
		}
		source.Close()
		isFile = source.ID.Type == hostpath.File
	}
	root, err := os.OpenRoot(s.to)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // A directory handle.
	name := strings.TrimPrefix(filepath.Clean(m.Destination), "/")
	if _, err := root.Stat(name); err == nil {
		return nil
	}
	if !isFile {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
