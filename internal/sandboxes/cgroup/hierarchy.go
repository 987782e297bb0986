package cgroup

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Config says where to look. Zero values are the running host's.
type Config struct {
	// Parent is the group that all of this installation's groups are made
	// under, relative to a hierarchy's root. Required.
	Parent string
	// MountInfo and Self stand in for /proc/self/mountinfo and
	// /proc/self/cgroup.
	MountInfo string
	Self      string
	// UID is the user who will make groups; 0 makes them under a hierarchy's
	// root, anyone else under the part of version 2 that systemd delegated.
	UID int
}

// controllerPlace is where one controller's groups are.
type controllerPlace struct {
	version int    // 1 or 2
	parent  string // the absolute directory of the parent group
	missing string // why the controller can't be used; then the rest is unset
}

// Hierarchy is the usable part of the host's control groups. It is immutable
// after New and safe for concurrent use.
type Hierarchy struct {
	cfg    Config
	places map[Controller]controllerPlace
}

// New finds the host's hierarchies and prepares the parent group in each. It
// never fails: a controller that can't be used is told by Missing.
func New(cfg Config) *Hierarchy {
	if cfg.MountInfo == "" {
		cfg.MountInfo = "/proc/self/mountinfo"
	}
	if cfg.Self == "" {
		cfg.Self = "/proc/self/cgroup"
	}
	return &Hierarchy{cfg: cfg, places: prepareParents(cfg)}
}

// prepareParents makes the parent groups. It can be done again, after a last Remove
// has taken them away.
func prepareParents(cfg Config) map[Controller]controllerPlace {
	places := map[Controller]controllerPlace{}
	mounts, err := readMounts(cfg.MountInfo)
	if err != nil {
		for _, c := range Controllers() {
			places[c] = controllerPlace{missing: fmt.Sprintf("the mounted control groups can't be read (%v)", err)}
		}
		return places
	}
	// Version 2 is touched only where something is left for it.
	second := sync.OnceValue(func() unified { return prepareUnified(cfg, mounts.unified) })
	for _, c := range append(Controllers(), cpuacct) {
		if dir, ok := mounts.v1[c]; ok {
			places[c] = prepareV1(cfg, dir)
		} else if c != cpuacct {
			places[c] = second().placeOf(c)
		}
	}
	if p := places[CPU]; p.missing == "" {
		weighParent(p.version, p.parent)
	}
	return places
}

// Missing says for each controller that can't be used why, and how to get it.
func (h *Hierarchy) Missing() map[Controller]string {
	missing := map[Controller]string{}
	for _, c := range Controllers() {
		if reason := h.places[c].missing; reason != "" {
			missing[c] = reason
		}
	}
	return missing
}

// removeParents removes a share's groups and the parents where they are empty, so
// that the last sandbox of an installation leaves nothing.
func (h *Hierarchy) removeParents(share string) {
	for _, dir := range h.parents() {
		if share != "" {
			_ = unix.Rmdir(filepath.Join(dir, share)) // Groups that are still in it keep it, here and below.
		}
		_ = unix.Rmdir(dir)
	}
}

// Tidy removes the parents where they are empty, for who has only looked. Create makes them
// again.
func (h *Hierarchy) Tidy() { h.removeParents("") }

// parents lists the distinct parent directories of the usable controllers.
func (h *Hierarchy) parents() []string {
	var dirs []string
	for _, c := range append(Controllers(), cpuacct) {
		if p, ok := h.places[c]; ok && p.missing == "" && !slices.Contains(dirs, p.parent) {
			dirs = append(dirs, p.parent)
		}
	}
	return dirs
}

// mounts are the mounted hierarchies: a directory for each controller of
// version 1, and that of version 2 ("" if there is none).
type mounts struct {
	v1      map[Controller]string
	unified string
}

// readMounts reads mountinfo(5): field 5 is the mount point, and after the
// separator come the type, the source and the options, which name controllers.
func readMounts(path string) (mounts, error) {
	found := mounts{v1: map[Controller]string{}}
	f, err := os.Open(path)
	if err != nil {
		return found, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		// The first mount of a hierarchy counts: later ones are copies, in a
		// chroot's /sys for example.
		switch right[0] {
		case "cgroup2":
			found.unified = cmp.Or(found.unified, left[4])
		case "cgroup":
			for option := range strings.SplitSeq(right[2], ",") {
				found.v1[Controller(option)] = cmp.Or(found.v1[Controller(option)], left[4])
			}
		}
	}
	return found, lines.Err()
}

func prepareV1(cfg Config, mount string) controllerPlace {
	parent := filepath.Join(mount, cfg.Parent)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // Limits are no secret, and others' tools read them.
		return controllerPlace{missing: fmt.Sprintf("%s is not writable (%v): run the daemon as root, or boot with cgroup version 2 for limits without root", mount, err)}
	}
	return controllerPlace{version: 1, parent: parent}
}
