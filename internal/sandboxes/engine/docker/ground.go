package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/layer"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// ground is a place with an instance's mounts, where the service sees them. All of them hang from
// one at its place, which is kept to itself, and go with it.
type ground struct {
	place string
}

func (e *Engine) ground(id string) ground { return ground{place: filepath.Join(e.cfg.Place, id)} }

func (g ground) lowerDir() string       { return filepath.Join(g.place, "lower") }
func (g ground) rootDir() string        { return filepath.Join(g.place, "root") }
func (g ground) diskFile(n int) string  { return filepath.Join(g.place, "disk-"+strconv.Itoa(n)) }
func (g ground) bindPlace(n int) string { return filepath.Join(g.place, "bind-"+strconv.Itoa(n)) }
func (g ground) emptyDir() string       { return filepath.Join(g.place, "empty") }

// filesDir is the directory of a disk that the sandbox sees: the disk's own top has what
// belongs to its file system. Of the first disk it is the root's writable layer.
func (g ground) filesDir(n int) string { return filepath.Join(g.diskFile(n), "files") }

// cappedDisk is a capped file system of the instance.
type cappedDisk struct {
	bytes int64
	mode  uint32
}

// groundPlan is what a ground is laid of.
type groundPlan struct {
	blanks mounts.Blanks
	folder string // for the disks' files, until they are mounted
	lower  engine.Root
	disks  []cappedDisk   // the first has the root's writable layer
	binds  []engine.Mount // of paths of the host
	hidden []engine.Mount // directories in these in which there is nothing to be seen
	owner  engine.Owner
	weak   bool   // owners stay what they are
	upper  string // an archive of what the writable layer holds; "" for nothing
}

// rootEntry is a name in the root's top directory.
type rootEntry struct {
	name string
	link string // where a symbolic link leads
	dir  bool
}

// layGround makes everything, and tells what the root's top directory has. It must run within
// the service's mounts. taken takes away what it made before an error.
func (g ground) layGround(ctx context.Context, p groundPlan) ([]rootEntry, error) {
	if err := os.MkdirAll(filepath.Dir(g.place), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(g.place, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", g.place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=711"); err != nil {
		return nil, fmt.Errorf("mount at %s: %w", g.place, err)
	}
	if err := unix.Mount("", g.place, "", unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("keep the mounts of %s to itself: %w", g.place, err)
	}
	for i, d := range p.disks {
		if err := g.layDisk(ctx, p.blanks, filepath.Join(p.folder, "disk-"+strconv.Itoa(i)), i, d); err != nil {
			return nil, fmt.Errorf("a disk of %d bytes: %w", d.bytes, err)
		}
	}
	if p.upper != "" {
		err := layer.Unpack(p.upper, g.filesDir(0), layer.Owners{})
		if errors.Is(err, unix.ENOSPC) {
			return nil, fault.Wrap(fault.ErrConflict, err, "the files of the snapshot %s do not fit a disk of %d bytes", p.upper, p.disks[0].bytes)
		}
		if err != nil {
			return nil, fmt.Errorf("unpack the snapshot %s: %w", p.upper, err)
		}
	}
	if err := mounts.Template(p.lower, g.lowerDir(), nil, nil); err != nil {
		return nil, fmt.Errorf("the template %s: %w", p.lower.Path, err)
	}
	if err := g.layBinds(p); err != nil {
		return nil, err
	}
	if err := g.layRoot(); err != nil {
		return nil, err
	}
	return g.entries()
}

func (g ground) layDisk(ctx context.Context, blanks mounts.Blanks, file string, n int, d cappedDisk) error {
	if err := blanks.Make(ctx, file, d.bytes); err != nil {
		return err
	}
	if err := os.Mkdir(g.diskFile(n), 0o711); err != nil { //nolint:gosec // the sandbox's users pass through
		return err
	}
	if _, err := mounts.Loop(file, g.diskFile(n), "ext4", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOATIME); err != nil {
		return err
	}
	// The mount is all that needs the file.
	if err := os.Remove(file); err != nil {
		return err
	}
	if err := os.Mkdir(g.filesDir(n), 0o700); err != nil {
		return err
	}
	return unix.Chmod(g.filesDir(n), d.mode)
}

// layBinds shows the paths of the host, and what is mounted below them, with the owner of the
// host as the sandbox's. A mount that lies over a part of one, or hides it, is laid over that part: the
// service mounts by name, and whoever may write there could lead it elsewhere.
func (g ground) layBinds(p groundPlan) error {
	pins := mounts.Pins{Mounts: slices.Concat(p.binds, p.hidden), At: g.bindPlace, Empty: g.emptyDir(), Attributes: bindAttributes}
	if !p.weak {
		pins.Owners = func(root unix.Stat_t) mounts.Translation { return translated(p.owner, root) }
		if err := mounts.CheckOwners(p.binds, pins.Owners); err != nil {
			return err
		}
	}
	if err := os.Mkdir(g.emptyDir(), 0o555); err != nil { //nolint:gosec // shown as a directory with nothing in it
		return err
	}
	return pins.Pin()
}

func bindAttributes(m engine.Mount) unix.MountAttr {
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.ReadOnly {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return attributes
}

// nobodysID is an id of the host that no distribution gives out.
const nobodysID = 1<<31 - 3

// translated shows the owner of what is mounted as the sandbox's user, as ownerMapping does.
func translated(o engine.Owner, root unix.Stat_t) mounts.Translation {
	uids, gids := ownerMapping(mounts.ShownOwner(o, root))
	return mounts.Translation{UIDs: uids, GIDs: gids}
}

// ownerMapping shows the host's owner as the sandbox's user, and all others as nobody:
// without a user namespace, root inside is the host's number of root, whose files a mount
// must not show as its own. Files that root inside makes are nobody's on the host.
func ownerMapping(o engine.Owner) (uids, gids []specs.LinuxIDMapping) {
	of := func(host, inside int) []specs.LinuxIDMapping {
		all := []specs.LinuxIDMapping{{ContainerID: nobodysID, HostID: 0, Size: 1}}
		if inside != 0 {
			all = append(all, specs.LinuxIDMapping{ContainerID: uint32(host), HostID: uint32(inside), Size: 1})
		}
		return all
	}
	return of(o.HostUID, o.UID), of(o.HostGID, o.GID)
}

// layRoot lays the writable layer over the template, and puts plain files where the service
// would show the sandbox files of its own.
func (g ground) layRoot() error {
	if err := errors.Join(os.Mkdir(filepath.Join(g.diskFile(0), "work"), 0o700), os.Mkdir(g.rootDir(), 0o755)); err != nil { //nolint:gosec // a mount lies over it
		return err
	}
	// By names from here: the sandbox reads the options in its own table of mounts.
	if err := unix.Chdir(g.place); err != nil {
		return err
	}
	defer unix.Chdir("/") //nolint:errcheck // of a thread of our own
	// No redirects and the like: the layer alone says what was written and deleted.
	const options = "lowerdir=lower,upperdir=disk-0/files,workdir=disk-0/work,index=off,metacopy=off,redirect_dir=nofollow"
	if err := unix.Mount("overlay", g.rootDir(), "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("lay the writable layer over the template: %w", err)
	}
	root, err := os.OpenRoot(g.rootDir())
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	if err := root.MkdirAll("etc", 0o755); err != nil {
		return err
	}
	for _, name := range networkFiles() {
		if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			if err := root.RemoveAll(name); err != nil { // a link to what only a booted system has
				return err
			}
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// networkFiles are what the service mounts into a container unless somebody else does, on a
// disk without a cap.
func networkFiles() []string { return []string{"etc/hosts", "etc/hostname", "etc/resolv.conf"} }

// entries is what the root's top directory has.
func (g ground) entries() ([]rootEntry, error) {
	found, err := os.ReadDir(g.rootDir())
	if err != nil {
		return nil, err
	}
	var all []rootEntry
	for _, f := range found {
		en := rootEntry{name: f.Name(), dir: f.IsDir()}
		switch {
		case f.Type()&os.ModeSymlink != 0:
			if en.link, err = os.Readlink(filepath.Join(g.rootDir(), f.Name())); err != nil {
				return nil, err
			}
		case !f.IsDir() && !f.Type().IsRegular():
			continue
		}
		all = append(all, en)
	}
	return all, nil
}

// takeGroundAway takes a ground away, whatever of it is there. It must run within the service's
// mounts.
func (g ground) takeGroundAway() error {
	for {
		err := unix.Unmount(g.place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			break // nothing is mounted there any more
		}
		if err != nil {
			return fmt.Errorf("take the mounts at %s away: %w", g.place, err)
		}
	}
	if err := os.Remove(g.place); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// takeGround does so where the service is. Without one that answers it is done in this
// process's own mounts: when the place is removed, the kernel unmounts in all others what is
// mounted on it.
func (e *Engine) takeGround(ctx context.Context, id string) error {
	g := e.ground(id)
	if _, err := os.Lstat(g.place); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if e.checkSocket() != nil {
		return g.takeGroundAway() // whoever listens there is no service
	}
	s, err := connectService(e.cfg.Host)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing was sent
	if err := s.withinMounts(ctx, g.takeGroundAway); err == nil || !isLost(err) {
		return err
	}
	return g.takeGroundAway()
}
