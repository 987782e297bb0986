package gvisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// How large a directory root may be. It is copied for each sandbox, because
// runsc makes mount points in it and a template is never written; what is
// large comes in by read-only mounts, or as an image.
const (
	skeletonEntries = 5000
	skeletonBytes   = 32 << 20
)

// skeleton copies one directory root.
type skeleton struct {
	from, to string
	ids      identity
	entries  int
	bytes    int64
}

// copySkeleton copies the template's tree, with its owners as the sandbox will
// see them, and makes the mount points.
func copySkeleton(spec engine.Spec, ids identity, to string) error {
	s := &skeleton{from: spec.Root.Path, to: to, ids: ids}
	if err := filepath.WalkDir(s.from, s.copy); err != nil {
		return err
	}
	for _, m := range spec.Mounts {
		if err := s.mountPoint(m); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/dev/shm", "/sys", "/run", "/tmp", "/.cofferdam"} {
		if err := s.mountPoint(engine.Mount{Destination: dir}); err != nil {
			return err
		}
	}
	return nil
}

func (s *skeleton) copy(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	s.entries++
	s.bytes += info.Size()
	if s.entries > skeletonEntries || s.bytes > skeletonBytes {
		return fault.Invalid("the root directory %s is too large to be copied for each sandbox; make an image of it, or show its large parts by read-only mounts", s.from)
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
		return s.own(path, target)
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path) //nolint:gosec // A file of the template.
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil { //nolint:gosec // A file of our own bundle.
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
	return s.own(path, target)
}

// own gives the copy the host ids that the sandbox sees as the template's.
func (s *skeleton) own(path, target string) error {
	if os.Geteuid() != 0 {
		return nil // All is the user's own, and stays so.
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	return os.Lchown(target, hostID(s.ids.uids, st.Uid), hostID(s.ids.gids, st.Gid))
}

// hostID translates an id of the template; one that has no mapping becomes
// root's.
func hostID(ids []specs.LinuxIDMapping, id uint32) int {
	for _, m := range ids {
		if id >= m.ContainerID && id-m.ContainerID < m.Size {
			return int(m.HostID + id - m.ContainerID)
		}
	}
	if len(ids) == 0 {
		return int(id)
	}
	return int(ids[0].HostID)
}

// mountPoint makes what a mount is laid over, a file for a file. The path is
// resolved inside the copy, whose links may point anywhere.
func (s *skeleton) mountPoint(m engine.Mount) error {
	isFile := false
	if m.Source != "" {
		info, err := os.Stat(m.Source)
		if err != nil {
			return err
		}
		isFile = !info.IsDir()
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
