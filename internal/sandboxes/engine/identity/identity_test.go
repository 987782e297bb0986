package identity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// lookup translates as the kernel would.
func lookup(t *testing.T, ids []specs.LinuxIDMapping, inside uint32) int {
	t.Helper()
	found := -1
	for _, m := range ids {
		if inside >= m.ContainerID && inside-m.ContainerID < m.Size {
			if found >= 0 {
				t.Errorf("%d is mapped twice", inside)
			}
			found = int(m.HostID + inside - m.ContainerID)
		}
	}
	return found
}

func TestOnlyTheOwnerIsSomebodyOnTheHost(t *testing.T) {
	root := Source{}
	owner := engine.Owner{UID: 1000, GID: 1000, HostUID: 501, HostGID: 20}
	ids, err := root.Of("box", owner, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u, g := lookup(t, ids.UIDs, 1000), lookup(t, ids.GIDs, 1000); u != 501 || g != 20 {
		t.Errorf("the owner is %d:%d on the host", u, g)
	}
	for _, id := range []uint32{0, 1, 999, 1001, 65534} {
		if host := lookup(t, ids.UIDs, id); host < idBase || host >= idBase+idSlots*idCount {
			t.Errorf("%d is %d on the host", id, host)
		}
	}
	if host := lookup(t, ids.UIDs, idCount); host != -1 {
		t.Errorf("%d is %d on the host", idCount, host)
	}
	nobody, err := root.Of("box", engine.Owner{}, nil)
	if err != nil || lookup(t, nobody.UIDs, 0) < idBase {
		t.Errorf("without an owner root is %d on the host (%v)", lookup(t, nobody.UIDs, 0), err)
	}
	if last := idBase + idSlots*idCount; last >= 1<<31 {
		t.Errorf("the last id %d does not fit where signed ids are used", last)
	}
}

func TestRootlessIdentities(t *testing.T) {
	owner := engine.Owner{UID: 1000, GID: 1000, HostUID: 501, HostGID: 20}
	with := Source{uid: 501, gid: 20, subUID: idRange{100000, 65536}, subGID: idRange{200000, 65536}}
	ids, err := with.Of("box", owner, nil)
	if err != nil || ids.Single {
		t.Fatalf("%+v, %v", ids, err)
	}
	if got := [4]int{lookup(t, ids.UIDs, 0), lookup(t, ids.UIDs, 1000), lookup(t, ids.GIDs, 0), lookup(t, ids.GIDs, 65535)}; got != [4]int{100000, 501, 200000, 265534} {
		t.Errorf("mapped to %v", got)
	}
	without := Source{uid: 501, gid: 20, Missing: "no ids"}
	ids, err = without.Of("box", owner, nil)
	if err != nil || !ids.Single || lookup(t, ids.UIDs, 1000) != 501 || lookup(t, ids.UIDs, 0) != -1 {
		t.Errorf("%+v, %v", ids, err)
	}
	owner.HostUID = 0
	if _, err := with.Of("box", owner, nil); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a user's daemon for root: %v", err)
	}
}

func TestSubordinate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	text := "other:1:2\nbob:100000:65536\nbad\nbob:5:x\n1234:7:8\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]idRange{"bob": {100000, 65536}, "eve": {}, "other": {1, 2}} {
		if got := subordinate(path, name, 4321); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := subordinate(path, "zed", 1234); got != (idRange{7, 8}) {
		t.Errorf("by number: %+v", got)
	}
	if got := subordinate(path+".absent", "bob", 1); got != (idRange{}) {
		t.Errorf("no file: %+v", got)
	}
}

func TestGroupsOfMounts(t *testing.T) {
	dir := t.TempDir()
	mounts := []engine.Mount{{Source: dir, Destination: "/w"}, {Source: dir, Destination: "/x"}, {Source: dir, Destination: "/r", ReadOnly: true}}
	owner := engine.Owner{UID: 1000, GID: 1000, HostUID: 501, HostGID: 20}
	for _, tc := range []struct {
		uid, gid int
		want     string
	}{
		{501, 20, ""}, {501, 77, "77"}, {0, 0, ""}, {502, 77, ""}, {501, 0, "chgrp -R 20"},
	} {
		if err := os.Chown(dir, tc.uid, tc.gid); err != nil {
			t.Fatal(err)
		}
		extra, err := groupsOf(owner, mounts)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(extra) == 1 && extra[0] == 77:
			got = "77"
		case len(extra) > 0:
			got = "more"
		}
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%d:%d: %q, want %q", tc.uid, tc.gid, got, tc.want)
		}
	}
}
