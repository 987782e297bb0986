package mounts

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Translation is how the owners of what a mount shows are translated; the zero value leaves them.
type Translation struct {
	UIDs, GIDs []specs.LinuxIDMapping // ContainerID is the file system's, HostID the one that is seen
	// IfReadable: a read-only mount of a file system that translates no owners is shown with those that
	// it has. Without it such a mount is refused, as each that can be written is.
	IfReadable bool
}

// ShownOwner is an owner with the host's user whose files a mount shows as those of the sandbox's user.
// Root may have anybody's files shown: those are the owner's of what is mounted, and no third one's. All
// others have their own files, whoever owns what they mount.
func ShownOwner(o engine.Owner, root unix.Stat_t) engine.Owner {
	if o.HostUID == 0 && o.UID != 0 && root.Uid != 0 {
		o.HostUID, o.HostGID = int(root.Uid), int(root.Gid)
	}
	return o
}

// Swapped translates the owner of a mount's root, where that is not the sandbox's own (ShownOwner), to the
// one of the host as whom the sandbox's user acts. All other users of the sandbox stay as whom they act, and
// everybody else has no name in the mount: the kernel lets nobody write to their files.
func Swapped(o engine.Owner, uids, gids []specs.LinuxIDMapping, root unix.Stat_t) Translation {
	shown := ShownOwner(o, root)
	if shown == o || len(uids) == 0 {
		return Translation{}
	}
	t := Translation{UIDs: swapID(uids, o.UID, shown.HostUID), GIDs: swapID(gids, o.GID, shown.HostGID), IfReadable: true}
	if t.UIDs == nil || t.GIDs == nil { // it belongs to another user of the sandbox
		return Translation{}
	}
	return t
}

// swapID returns a mapping of a sandbox's ids with another id of the file system for the one inside; nil if the
// sandbox has that for another of its own.
func swapID(ids []specs.LinuxIDMapping, inside, shown int) []specs.LinuxIDMapping {
	var all []specs.LinuxIDMapping
	for _, m := range ids {
		has := int(m.HostID) <= shown && shown < int(m.HostID)+int(m.Size)
		switch {
		case int(m.ContainerID) == inside && m.Size == 1:
			all = append(all, specs.LinuxIDMapping{ContainerID: uint32(shown), HostID: m.HostID, Size: 1})
		case has && m.Size == 1: // a group of another mount: here it is the sandbox's own
		case has:
			return nil
		case m.Size > 0:
			all = append(all, specs.LinuxIDMapping{ContainerID: m.HostID, HostID: m.HostID, Size: m.Size})
		}
	}
	return all
}

// CheckOwners refuses, before anything starts, a mount of a file system that does not translate owners, if
// it must. of says how a mount is shown whose root is that.
func CheckOwners(all []engine.Mount, of func(root unix.Stat_t) Translation) error {
	for _, m := range all {
		if m.Source == "" {
			continue
		}
		if err := checkOwner(m, of); err != nil {
			return err
		}
	}
	return nil
}

func checkOwner(m engine.Mount, of func(root unix.Stat_t) Translation) error {
	source, err := m.Open()
	if err != nil {
		return nil // whoever mounts it says why not
	}
	defer source.Close()
	var root unix.Stat_t
	if err := unix.Fstat(source.Fd(), &root); err != nil {
		return err
	}
	t := of(root)
	if len(t.UIDs) == 0 || t.IfReadable && m.ReadOnly {
		return nil
	}
	tree, err := copyOf(source.Fd(), "", unix.AT_RECURSIVE, unix.MountAttr{}, t)
	if err != nil {
		return untranslated(m, root, err)
	}
	return unix.Close(tree)
}

// untranslated refuses a mount of which the owner can't be shown as the sandbox's user, and says what to do instead.
func untranslated(m engine.Mount, root unix.Stat_t, err error) error {
	instead := "run cofferdam as that user, or with --workspace copy"
	if root.Uid == 0 { // whose files some engines show by a translation, too
		instead = "take the engine gvisor, or --workspace copy"
	}
	return fault.Wrap(fault.ErrInvalid, err, "%s belongs to the user %d, whose files can't be the sandbox's own there: the file system that it lies on, or one mounted in it, does not let mounts translate owners; %s", m.Source, root.Uid, instead)
}

// translate gives a copy of a mount, which lies nowhere yet, its attributes.
func translate(tree int, recursive uint, attributes unix.MountAttr, t Translation) error {
	if len(t.UIDs) > 0 {
		users, err := userNamespace(t.UIDs, t.GIDs)
		if err != nil {
			return err
		}
		defer users.Close()
		attributes.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attributes.Userns_fd = uint64(users.Fd())
	}
	if attributes == (unix.MountAttr{}) {
		return nil
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|recursive, &attributes); err != nil {
		return fmt.Errorf("map its owners, which the file system it lies on must allow: %w", err)
	}
	return nil
}
