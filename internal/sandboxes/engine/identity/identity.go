// Package identity maps the users of sandboxes to users of the host.
package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Host ids that stand for a sandbox's ids. They are above all ranges that
// distributions and systemd give out, and below 2^31. Each sandbox takes the
// slot that its id hashes to: two that share one lose nothing but that their
// processes are of the same unprivileged users.
const (
	idBase  = 1879300000
	idCount = 65536
	idSlots = 2000
)

// Source is where host ids for sandboxes come from: ranges of our own for a daemon that is
// root, subordinate ids for one that is not. Make it with Find.
type Source struct {
	uid, gid int // of the daemon
	// sub is what /etc/subuid and /etc/subgid give a daemon that is not
	// root; zero counts if nothing usable is given.
	subUID, subGID idRange
	Missing        string // why sub can't be used, and how to get it
}

type idRange struct{ first, count int }

// Identity is one sandbox's mapping.
type Identity struct {
	UIDs, GIDs []specs.LinuxIDMapping
	// Single: only the owner's id exists, so PID 1 has it too, with ambient
	// capabilities that it must drop for what it starts.
	Single bool
}

// Find looks where the ids of a daemon of this user come from.
func Find(uid int) Source {
	s := Source{uid: uid, gid: os.Getegid()}
	if uid == 0 {
		return s
	}
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(tool); err != nil {
			s.Missing = tool + " is not installed: install the package uidmap (shadow-utils)"
			return s
		}
	}
	name := strconv.Itoa(uid)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	s.subUID, s.subGID = subordinate("/etc/subuid", name, uid), subordinate("/etc/subgid", name, uid)
	if s.subUID.count < idCount-1 || s.subGID.count < idCount-1 {
		s.Missing = fmt.Sprintf("/etc/subuid and /etc/subgid give %s fewer than %d ids: run `sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s`", name, idCount-1, name)
		s.subUID, s.subGID = idRange{}, idRange{}
	}
	return s
}

// subordinate finds the first range of a user in a file of name:first:count
// lines.
func subordinate(path, name string, uid int) idRange {
	data, err := os.ReadFile(path)
	if err != nil {
		return idRange{}
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.Split(strings.TrimSpace(line), ":")
		if len(parts) != 3 || (parts[0] != name && parts[0] != strconv.Itoa(uid)) {
			continue
		}
		first, err1 := strconv.Atoi(parts[1])
		count, err2 := strconv.Atoi(parts[2])
		if errors.Join(err1, err2) == nil {
			return idRange{first: first, count: count}
		}
	}
	return idRange{}
}

// Of maps a sandbox's ids to host ids that have no rights, except the
// owner's, which stands for the host's user, so that files on mounts keep
// their owner. A zero owner is nobody on the host.
func (s Source) Of(id string, owner engine.Owner, mounts []engine.Mount) (Identity, error) {
	switch {
	case s.uid == 0:
		first := idBase + slotOf(id)*idCount
		ids := Identity{UIDs: mapping(first, owner.UID, owner.HostUID), GIDs: mapping(first, owner.GID, owner.HostGID)}
		extra, err := groupsOf(owner, mounts)
		for i, gid := range extra {
			ids.GIDs = append(ids.GIDs, mapOneID(idCount+i, gid))
		}
		return ids, err
	case owner.HostUID != s.uid || owner.HostGID != s.gid:
		return Identity{}, fault.New(fault.ErrForbidden, "a daemon of user %d can't run a sandbox for user %d; that takes a daemon that is root", s.uid, owner.HostUID)
	case s.Missing == "":
		return Identity{UIDs: mapping(s.subUID.first, owner.UID, owner.HostUID), GIDs: mapping(s.subGID.first, owner.GID, owner.HostGID)}, nil
	default:
		return Identity{
			UIDs: []specs.LinuxIDMapping{mapOneID(owner.UID, s.uid)}, GIDs: []specs.LinuxIDMapping{mapOneID(owner.GID, s.gid)}, Single: true,
		}, nil
	}
}

// mapping gives the container ids 0 to 65535 host ids from first on, and the
// owner's id the host user's.
func mapping(first, owner, host int) []specs.LinuxIDMapping {
	if owner == 0 {
		m := mapOneID(0, first)
		m.Size = idCount
		return []specs.LinuxIDMapping{m}
	}
	below, above := mapOneID(0, first), mapOneID(owner+1, first+owner)
	below.Size, above.Size = uint32(owner), uint32(idCount-owner-1)
	return []specs.LinuxIDMapping{below, mapOneID(owner, host), above}
}

func mapOneID(inside, host int) specs.LinuxIDMapping {
	return specs.LinuxIDMapping{ContainerID: uint32(inside), HostID: uint32(host), Size: 1}
}

// groupsOf lists the groups of the owner's read-write mounts that are not the
// owner's own. They need a mapping: the host lets nobody, whatever his rights
// in the sandbox, change a file whose group has none. The group root gets no
// mapping; a mount that it would lock is refused with the way out.
func groupsOf(owner engine.Owner, mounts []engine.Mount) ([]int, error) {
	var extra []int
	for _, m := range mounts {
		if m.Source == "" || m.ReadOnly {
			continue
		}
		st, err := ownerOf(m)
		if err != nil {
			continue // That a source is what it was is checked where it is mounted.
		}
		gid := int(st.Gid)
		if gid == owner.HostGID || int(st.Uid) != owner.HostUID {
			continue
		}
		if gid == 0 {
			return nil, fault.Invalid("%s belongs to user %d but to the group root, so that the sandbox could not write there; give it the user's group: chgrp -R %d %s", m.Source, owner.HostUID, owner.HostGID, m.Source)
		}
		extra = appendNew(extra, gid)
	}
	return extra, nil
}

// ownerOf looks at what a mount shows, without following a link where there was none.
func ownerOf(m engine.Mount) (st unix.Stat_t, err error) {
	p, err := m.Open()
	if err != nil {
		return st, err
	}
	defer p.Close()
	return st, unix.Fstat(p.Fd(), &st)
}

func appendNew(list []int, n int) []int {
	if slices.Contains(list, n) {
		return list
	}
	return append(list, n)
}

// CheckOwner refuses an owner whom no mapping has.
func CheckOwner(o engine.Owner) error {
	if o.UID < 0 || o.GID < 0 || o.UID >= idCount-1 || o.GID >= idCount-1 || o.HostUID < 0 || o.HostGID < 0 {
		return fault.Invalid("the owner's ids %+v are out of range: inside 0 to %d, on the host 0 or more", o, idCount-2)
	}
	if (o.UID == 0 && o.HostUID != 0) || (o.GID == 0 && o.HostGID != 0) {
		return fault.Invalid("the owner can't be root inside: root's files there belong to nobody on the host")
	}
	return nil
}

func slotOf(id string) int {
	sum := sha256.Sum256([]byte(id))
	return int(binary.BigEndian.Uint32(sum[:4]) % idSlots)
}

// HostID translates an id of the template; one that has no mapping becomes
// root's.
func HostID(ids []specs.LinuxIDMapping, id uint32) int {
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

// InsideID is HostID's other way: one that stands for none becomes root's.
func InsideID(ids []specs.LinuxIDMapping, id uint32) int {
	for _, m := range ids {
		if id >= m.HostID && id-m.HostID < m.Size {
			return int(m.ContainerID + id - m.HostID)
		}
	}
	if len(ids) == 0 {
		return int(id)
	}
	return 0
}
