package agenthome

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// readUnlinked adds up what they take, by home: "uid/name", as it lies in the directory of all homes.
// taken are the homes that are looked at, and waited the calls that waited at the look before, which become those of this one. An error with what was
// found until then is ctx's.
func readUnlinked(ctx context.Context, dir string, taken, waited map[string]bool) (map[string]open, error) {
	u, err := unlinkedBelow(dir, taken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no homes
	}
	if err != nil {
		return nil, err
	}
	u.waited = waited
	runtime.LockOSThread() // whose time is counted
	defer runtime.UnlockOSThread()
	if err := u.lookAtAll(ctx); err != nil {
		return nil, err
	}
	clear(waited)
	maps.Copy(waited, u.waits)
	return u.found, ctx.Err()
}

// unlinkedBelow is for the homes of a directory, at which nobody has looked yet.
func unlinkedBelow(dir string, taken map[string]bool) (*unlinked, error) {
	opened, err := hostpath.Follow(dir) // the installation's own
	if err != nil {
		return nil, err
	}
	opened.Close()
	table, err := hostpath.ReadTable()
	if err != nil {
		return nil, err
	}
	spot, _ := table.SpotOf(opened.Name)
	return newUnlinked(spot, taken), nil
}

// lookAtAll adds what all processes hold, and what of their networks none of them has as a descriptor, if any mount shows a home.
func (u *unlinked) lookAtAll(ctx context.Context) error {
	processes, err := u.processes(ctx)
	if err != nil || len(u.mounts) == 0 {
		return err
	}
	for _, n := range u.nets {
		n.there = u.sockets(ctx, n)
	}
	for _, p := range processes {
		u.lookAtProcess(ctx, p)
	}
	u.addSockets(ctx, processes)
	return nil
}

// mostTables is with how many tables of descriptors a thread's is compared. Later ones count as its own: a process may have a table for each
// of its threads, and comparing all with all would be work that nobody bounds.
const mostTables = 8

// lookAtProcess adds what one process holds.
func (u *unlinked) lookAtProcess(ctx context.Context, p process) {
	var tables []int // threads, each with descriptors that are not the others'
	eachName(p.tasks, func(name string) bool {
		thread, err := strconv.Atoi(name)
		if err != nil {
			return true
		}
		dir, shares, more := filepath.Join(p.tasks, name), false, true
		begin := func() {
			shares = slices.ContainsFunc(tables, func(other int) bool { return u.same(other, thread) })
			u.addThread(p, dir)
		}
		n := 0 // of those that show no home few descriptors are looked at, and a kernel of a sandbox's own has many threads
		if p.space.home != "" {
			n = 1
		}
		if !u.spendWork(ctx, p, n, begin) || shares {
			return shares
		}
		if len(tables) < mostTables {
			tables = append(tables, thread)
		}
		eachName(filepath.Join(dir, "fd"), func(descriptor string) bool {
			more = u.spendWork(ctx, p, 1, func() { u.addDescriptor(p, dir, descriptor) })
			return more
		})
		return more
	})
	if p.space.home != "" {
		u.addMapped(ctx, p)
		u.spendWork(ctx, p, 1, func() { u.addNamed(filepath.Join(p.dir, "exe")) })
	}
}

func newUnlinked(homes hostpath.Spot, taken map[string]bool) *unlinked {
	return &unlinked{
		homes: homes, taken: taken, device: inMaps(homes.Device), mounts: map[string]string{}, spaces: map[string]*space{},
		nets: map[string]*network{}, shown: map[string]bool{}, waits: map[string]bool{},
		counted: map[[3]uint64]bool{}, heard: map[string]bool{}, found: map[string]open{}, spent: map[string]*effort{},
		most: effort{MostDescriptors, mostTime}, all: os.Geteuid() == 0, clock: threadTime, same: sameDescriptors, stat: statOf,
	}
}

// inMaps is a device as maps write it: "8:1" is "08:01".
func inMaps(device string) string {
	major, minor, _ := strings.Cut(device, ":")
	write := func(decimal string) string {
		n, err := strconv.ParseUint(decimal, 10, 32)
		if err != nil {
			return decimal
		}
		hex := strconv.FormatUint(n, 16)
		return strings.Repeat("0", max(0, 2-len(hex))) + hex
	}
	return write(major) + ":" + write(minor)
}

// statOf is what a link of /proc leads to, with the mount through which it is held.
func statOf(path string, flags int, st *unix.Statx_t) error {
	return unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, st)
}

// processes are those with mounts of their own, whose mounts it reads, those that show a home first.
func (u *unlinked) processes(ctx context.Context) (all []process, err error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		dir, in := living(entry.Name())
		if in == own {
			u.host = append(u.host, dir)
		}
		if in == "" || in == own { // it has ended, or is another user's
			continue
		}
		p := process{dir, filepath.Join("/proc", entry.Name(), "task"), u.spaceOf(in, dir)}
		if p.space == nil {
			continue
		}
		u.noteNet(p)
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b process) int { return strings.Compare(b.space.home, a.space.home) }) // none is last
	return all, nil
}

// spaceOf is a namespace of mounts by one of its processes, which is nil if that has ended: the next one of the same shows what there is.
func (u *unlinked) spaceOf(name, process string) *space {
	if u.spaces[name] == nil {
		text, err := os.ReadFile(filepath.Join(process, "mountinfo"))
		if err != nil {
			return nil
		}
		u.spaces[name] = &space{home: u.readMounts(hostpath.ParseTable(string(text)))}
	}
	return u.spaces[name]
}

// living is the directory of a thread of a process that has not ended, and its namespace of mounts. The first thread may
// end and leave the others: /proc has nothing of it then. space is "" if there is none.
func living(process string) (dir, space string) {
	dir = filepath.Join("/proc", process)
	space, err := os.Readlink(filepath.Join(dir, "ns", "mnt"))
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return dir, space
	}
	eachName(filepath.Join(dir, "task"), func(thread string) bool {
		other := filepath.Join("/proc", thread) // not listed, and there
		if space, err = os.Readlink(filepath.Join(other, "ns", "mnt")); err == nil {
			dir = other
		}
		return err != nil
	})
	return dir, space
}

// readMounts notes which mounts show a part of a home that is taken, and gives the home.
func (u *unlinked) readMounts(table hostpath.Table) (home string) {
	for _, m := range table {
		below, is := strings.CutPrefix(m.Shows.Path, strings.TrimSuffix(u.homes.Path, "/")+"/")
		parts := strings.SplitN(below, "/", 3)
		if !is || m.Shows.Device != u.homes.Device || len(parts) < 3 || !u.taken[filepath.Join(parts[0], parts[1])] {
			continue
		}
		home = filepath.Join(parts[0], parts[1])
		u.mounts[m.ID] = home
		if !slices.Contains(u.places, m.At) {
			u.places = append(u.places, m.At)
		}
	}
	return home
}
