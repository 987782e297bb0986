package mounts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

// third is a user who has nothing to do with a mount, but files in it.
const third = 4321

// TestRootShowsTheOwnersFiles: whoever owns what root mounts, it is the sandbox's user's inside, new files are the
// owner's on the host, and nobody writes to a third one's.
func TestRootShowsTheOwnersFiles(t *testing.T) {
	root := engine.Owner{UID: 1000, GID: 1000}
	ids, err := identity.Find(0).Of("box", root, nil)
	check(t, err)
	of := func(st unix.Stat_t) Translation { return Swapped(root, ids.UIDs, ids.GIDs, st) }
	for _, owner := range []int{0, 1000, 1234} {
		for _, kind := range []string{"read-write", "read-only", "file", "nested"} {
			t.Run(kind+" of "+strconv.Itoa(owner), func(t *testing.T) {
				f := newField(t)
				all := f.ownedBy(t, owner, kind)
				pins := Pins{Mounts: all, At: func(n int) string { return filepath.Join(f.dir, "pins", strconv.Itoa(n)) }, Empty: filepath.Join(f.dir, "empty"), Owners: of}
				check(t, CheckOwners(all, of))
				alone(t, func() {
					check(t, pins.Pin())
					for n := range all {
						f.checkShown(t, pins.At(n), owner, kind)
					}
				})
			})
		}
	}
}

// ownedBy are mounts of what belongs to an owner, and has a file of a third one.
func (f field) ownedBy(t *testing.T, owner int, kind string) []engine.Mount {
	t.Helper()
	inner := filepath.Join(f.data, "inner")
	check(t, os.Mkdir(inner, 0o755))
	theirs := filepath.Join(f.data, "theirs")
	check(t, os.WriteFile(theirs, []byte("third"), 0o600))
	check(t, os.WriteFile(filepath.Join(inner, "key"), []byte("ours"), 0o600))
	for _, path := range []string{f.data, inner, filepath.Join(f.data, "key"), filepath.Join(inner, "key")} {
		check(t, os.Chown(path, owner, owner))
	}
	check(t, os.Chown(theirs, third, owner)) // of the owner's group
	check(t, os.Chmod(theirs, 0o660))
	grouped := filepath.Join(f.data, "grouped")
	check(t, os.WriteFile(grouped, []byte("owner's"), 0o600))
	check(t, os.Chown(grouped, owner, third))
	shown := func(path, at string) engine.Mount {
		p, err := hostpath.Resolve(path, nil)
		check(t, err)
		defer p.Close()
		return engine.Mount{Source: p.Name, Destination: at, Origin: p.ID, ReadOnly: kind == "read-only"}
	}
	switch kind {
	case "file":
		return []engine.Mount{shown(filepath.Join(f.data, "key"), "/data")}
	case "nested":
		return []engine.Mount{shown(f.data, "/data"), shown(inner, "/data/inner")}
	}
	return []engine.Mount{shown(f.data, "/data")}
}

// checkShown looks at a place as the host's root, as whom the sandbox's user acts. Root's rights
// do not reach a file whose owner has no name in the mount.
func (f field) checkShown(t *testing.T, at string, owner int, kind string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil || st.Uid != 0 || st.Gid != 0 {
		t.Errorf("%s is shown as %d:%d's (%v)", at, st.Uid, st.Gid, err)
	}
	if kind == "file" || kind == "read-only" { // which an engine makes it
		return
	}
	err := os.WriteFile(filepath.Join(at, "new"), nil, 0o600)
	name := filepath.Join(f.data, "new")
	if _, there := os.Lstat(name); there != nil {
		name = filepath.Join(f.data, "inner", "new")
	}
	if errors.Join(err, unix.Lstat(name, &st)) != nil || int(st.Uid) != owner || int(st.Gid) != owner {
		t.Errorf("a new file is %d:%d's on the host (%v)", st.Uid, st.Gid, err)
	}
	check(t, os.Remove(name))
	theirs := filepath.Join(at, "theirs")
	if _, err := os.Lstat(theirs); err != nil || owner == 0 { // without a translation the host's root may write anywhere; the sandbox's user has none of its rights
		return
	}
	if err := os.WriteFile(theirs, []byte("changed"), 0); !errors.Is(err, unix.EACCES) {
		t.Errorf("a third one's file could be written: %v", err)
	}
	if err := os.Chown(theirs, 0, 0); err == nil {
		t.Error("a third one's file could be given away")
	}
	if err := os.WriteFile(filepath.Join(at, "grouped"), []byte("changed"), 0); !errors.Is(err, unix.EACCES) {
		t.Errorf("the owner's file of a third group could be written: %v", err)
	}
}

// TestOnlyRootsMountsAreTranslated: nobody else gets to be the owner of what he does not own.
func TestOnlyRootsMountsAreTranslated(t *testing.T) {
	own := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 5000, Size: 1000}, {ContainerID: 1000, HostID: 0, Size: 1}, {ContainerID: 1001, HostID: 6001, Size: 64535}, {ContainerID: 65536, HostID: 1234, Size: 1}}
	for name, c := range map[string]struct {
		owner engine.Owner
		st    unix.Stat_t
		as    int // whose files are shown; -1: nothing is translated
	}{
		"a user's own":              {engine.Owner{UID: 1000, GID: 1000, HostUID: 77, HostGID: 77}, unix.Stat_t{Uid: 77, Gid: 77}, -1},
		"another's, for a user":     {engine.Owner{UID: 1000, GID: 1000, HostUID: 77, HostGID: 77}, unix.Stat_t{Uid: 1234, Gid: 1234}, -1},
		"root's, for a user":        {engine.Owner{UID: 1000, GID: 1000, HostUID: 77, HostGID: 77}, unix.Stat_t{}, -1},
		"root's":                    {engine.Owner{UID: 1000, GID: 1000}, unix.Stat_t{}, -1},
		"root's, of a group":        {engine.Owner{UID: 1000, GID: 1000}, unix.Stat_t{Gid: 50}, -1},
		"of a group of the sandbox": {engine.Owner{UID: 1000, GID: 1000}, unix.Stat_t{Uid: 1234, Gid: 1234}, 1234},
		"of root's group":           {engine.Owner{UID: 1000, GID: 1000}, unix.Stat_t{Uid: 1234}, 1234},
		"another user's of the box": {engine.Owner{UID: 1000, GID: 1000}, unix.Stat_t{Uid: 5005, Gid: 5005}, -1},
		"without a user inside":     {engine.Owner{}, unix.Stat_t{Uid: 1234, Gid: 1234}, -1},
	} {
		got := Swapped(c.owner, own, own, c.st)
		if c.as < 0 && len(got.UIDs)+len(got.GIDs) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if c.as >= 0 && (len(got.UIDs) == 0 || !disjoint(got.UIDs) || !disjoint(got.GIDs) || got.UIDs[1] != (specs.LinuxIDMapping{ContainerID: uint32(c.as), Size: 1})) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// disjoint tells whether the kernel takes a mapping.
func disjoint(all []specs.LinuxIDMapping) bool {
	for i, a := range all {
		for _, b := range all[:i] {
			if a.ContainerID < b.ContainerID+b.Size && b.ContainerID < a.ContainerID+a.Size || a.HostID < b.HostID+b.Size && b.HostID < a.HostID+a.Size {
				return false
			}
		}
	}
	return true
}

// TestNoTranslationIsToldBefore: a file system that translates no owners is refused, by name and with what to do, if the
// mount can be written, and shown as it is if not.
func TestNoTranslationIsToldBefore(t *testing.T) {
	f := newField(t)
	ids := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 5000, Size: 1000}, {ContainerID: 1000, HostID: 0, Size: 1}}
	of := func(st unix.Stat_t) Translation {
		return Swapped(engine.Owner{UID: 1000, GID: 1000}, ids, ids, st)
	}
	alone(t, func() {
		check(t, unix.Mount("proc", f.data, "proc", 0, "")) // which translates none
		source := filepath.Join(f.data, strconv.Itoa(startedAs(t, 1234)), "task")
		p, err := hostpath.Follow(source)
		check(t, err)
		defer p.Close()
		m := engine.Mount{Source: p.Name, Destination: "/data", Origin: p.ID}
		if err := CheckOwners([]engine.Mount{m}, of); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a mount that can be written: %v", err)
		}
		m.ReadOnly = true
		check(t, CheckOwners([]engine.Mount{m}, of))
		at := filepath.Join(f.dir, "pins", "0")
		check(t, Show(m, at, unix.MountAttr{}, of))
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err != nil || st.Uid != 1234 {
			t.Errorf("it is shown as %d's (%v)", st.Uid, err)
		}
		always := func(unix.Stat_t) Translation { return Translation{UIDs: ids, GIDs: ids} }
		for place, instead := range map[string]string{source: "run cofferdam as that user", filepath.Join(f.data, "1"): "take the engine gvisor"} {
			p, err := hostpath.Follow(place)
			check(t, err)
			m := engine.Mount{Source: p.Name, Destination: "/data", Origin: p.ID, ReadOnly: true}
			if err := CheckOwners([]engine.Mount{m}, always); err == nil || !strings.Contains(err.Error(), instead) {
				t.Errorf("%s by an engine that translates each: %v", place, err)
			}
			p.Close()
		}
	})
}

// startedAs is a process of a user, which the test's end ends.
func startedAs(t *testing.T, user uint32) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/cat")
	stdin, err := cmd.StdinPipe()
	check(t, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}
