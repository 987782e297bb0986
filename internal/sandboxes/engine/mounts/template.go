package mounts

import (
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Template shows a root at a new directory, read-only, with its owners translated as in a
// user namespace with these mappings; without mappings they stay.
func Template(root engine.Root, at string, uids, gids []specs.LinuxIDMapping) error {
	if err := os.Mkdir(at, 0o755); err != nil { //nolint:gosec // a mount lies over it
		return err
	}
	switch root.Kind {
	case engine.RootImage:
		if err := mountImage(root.Path, at); err != nil {
			return err
		}
	default:
		if err := unix.Mount(root.Path, at, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return Remap(at, at, 0, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV}, uids, gids)
}

// mountImage mounts an EROFS image, by a loop device where the kernel needs one.
func mountImage(file, at string) error {
	err := unix.Mount(file, at, "erofs", unix.MS_RDONLY|unix.MS_NODEV, "")
	if errors.Is(err, unix.ENOTBLK) {
		_, err = Loop(file, at, "erofs", unix.MS_RDONLY|unix.MS_NODEV)
	}
	return err
}

// Remap lays a copy of a mount at a place, in which the owners are translated as in a user
// namespace with a mapping; without one they stay. recursive is 0 or unix.AT_RECURSIVE, for
// what is mounted below.
func Remap(from, at string, recursive uint, attributes unix.MountAttr, uids, gids []specs.LinuxIDMapping) error {
	tree, err := copyOf(unix.AT_FDCWD, from, recursive, attributes, Translation{UIDs: uids, GIDs: gids})
	if err != nil {
		return err
	}
	defer unix.Close(tree) //nolint:errcheck // nothing was written to it
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// copyOf is a copy of a mount that lies nowhere yet, as Remap says.
func copyOf(dir int, from string, recursive uint, attributes unix.MountAttr, owners Translation) (int, error) {
	var empty uint
	if from == "" {
		empty = unix.AT_EMPTY_PATH
	}
	tree, err := unix.OpenTree(dir, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|recursive|empty)
	if err != nil {
		return -1, fmt.Errorf("copy the mount: %w", err)
	}
	if err := translate(tree, recursive, attributes, owners); err != nil {
		_ = unix.Close(tree) // nothing was written to it
		return -1, err
	}
	return tree, nil
}
