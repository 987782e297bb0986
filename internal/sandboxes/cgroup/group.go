package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// cpuPeriod is the kernel's default accounting period, in microseconds.
const cpuPeriod = 100_000

// Group is one sandbox's control group, in each hierarchy that has a usable
// controller. Safe for concurrent use.
type Group struct {
	hierarchy *Hierarchy
	share     string                         // the directory of its share; "": none
	places    map[Controller]controllerPlace // parent is here the group's own directory
}

// Create makes the group under its share and sets its limits; a limit for a
// controller that is missing is an error, and then nothing is left behind. An id
// is there once, whatever its share.
func (h *Hierarchy) Create(share, id string, limits Limits) (*Group, error) {
	if _, err := h.Open(id); err == nil {
		return nil, fault.New(fault.ErrConflict, "sandbox %s has a control group already", id)
	}
	g, err := h.groupOf(shareDir(share), id)
	if err != nil {
		return nil, err
	}
	// Another's Remove may take the parents away between preparing and making.
	for range 10 {
		if err = h.prepareShare(share); err == nil {
			err = g.makeDirs()
		}
		if err == nil {
			err = g.offered()
		}
		if !takenAway(err) {
			break
		}
		prepareParents(h.cfg)
	}
	if err != nil {
		return nil, err
	}
	if err := g.setLimits(h, limits); err != nil {
		return nil, errors.Join(err, g.Remove(context.Background()))
	}
	return g, nil
}

// takenAway tells whether something was gone when it was used: before it was opened, or
// behind an open file, of which version 2 says that there is no such device.
func takenAway(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// makeDirs makes the group's directories, or none.
func (g *Group) makeDirs() error {
	dirs := g.listDirs()
	for i, dir := range dirs {
		err := os.Mkdir(dir, 0o755) //nolint:gosec // Limits are no secret, and other tools read them.
		if err == nil {
			continue
		}
		for _, made := range dirs[:i] {
			_ = unix.Rmdir(made) // The first error is the one to tell.
		}
		if errors.Is(err, os.ErrExist) {
			return fault.Wrap(fault.ErrConflict, err, "the control group %s exists already", dir)
		}
		return err
	}
	return nil
}

// offered wants the group to have the controllers that its limits need. In version 2 it has
// those that its share hands down at the moment in which it is made: a share that another's
// Remove took away, and that is there again, hands down none yet. The group goes then, and
// the error is os.ErrNotExist. The kernel lists a controller before it has made its files in
// groups that are there, so that the list alone says too little; to make the group again waits
// for that.
func (g *Group) offered() error {
	for c, p := range g.places {
		if p.version != 2 {
			continue
		}
		list := filepath.Join(p.parent, "cgroup.controllers")
		if _, err := os.Stat(list); err != nil {
			if _, gone := os.Stat(p.parent); gone != nil {
				return gone
			}
			continue // what stands in for the kernel's files has no such list
		}
		if !slices.Contains(fields(list), string(c)) || !slices.ContainsFunc(firstFiles(c), p.hasFile) {
			for _, dir := range g.listDirs() {
				_ = unix.Rmdir(dir) // The error to tell is that it is of no use.
			}
			return fmt.Errorf("the control group %s has no %s controller: %w", p.parent, c, os.ErrNotExist)
		}
	}
	return nil
}

// firstFiles are files of which each group has one that has a controller of version 2.
func firstFiles(c Controller) []string {
	switch c {
	case Memory:
		return []string{"memory.max"}
	case Pids:
		return []string{"pids.max"}
	case CPU, cpuacct:
		return []string{"cpu.weight", "cpu.max"} // a kernel may be built without one of them
	}
	return nil
}

func (p controllerPlace) hasFile(file string) bool {
	_, err := os.Stat(filepath.Join(p.parent, file))
	return err == nil
}

// Open finds a group that Create made, also one of a release that had no shares;
// fault.ErrNotFound if none of it is left.
func (h *Hierarchy) Open(id string) (*Group, error) {
	for _, share := range append([]string{""}, h.shares()...) {
		g, err := h.groupOf(share, id)
		if err != nil {
			return nil, err
		}
		for _, dir := range g.listDirs() {
			if _, err := os.Stat(dir); err == nil {
				return g, nil
			}
		}
	}
	return nil, fault.New(fault.ErrNotFound, "sandbox %s has no control group", id)
}

// groupOf is that of an id in a share's directory; "": in the parent itself.
func (h *Hierarchy) groupOf(share, id string) (*Group, error) {
	if id == "" || id == "." || id == ".." || filepath.Base(id) != id {
		return nil, fault.Invalid("control group %q: the name must be a single path element", id)
	}
	g := &Group{hierarchy: h, share: share, places: map[Controller]controllerPlace{}}
	for c, p := range h.places {
		if p.missing == "" {
			g.places[c] = controllerPlace{version: p.version, parent: filepath.Join(p.parent, share, id)}
		}
	}
	return g, nil
}

// Path is where the group is below a hierarchy's root, for a user who is root.
func (g *Group) Path() string {
	for _, p := range g.places {
		return filepath.Join("/", g.hierarchy.cfg.Parent, g.share, filepath.Base(p.parent))
	}
	return ""
}

// listDirs lists the group's distinct directories.
func (g *Group) listDirs() []string {
	var dirs []string
	for _, c := range append(Controllers(), cpuacct) {
		if p, ok := g.places[c]; ok && !slices.Contains(dirs, p.parent) {
			dirs = append(dirs, p.parent)
		}
	}
	return dirs
}

func (g *Group) setLimits(h *Hierarchy, l Limits) error {
	wanted := map[Controller]bool{Memory: l.MemoryBytes > 0, CPU: l.CPU > 0 || l.Weight > 0, Pids: l.Pids > 0}
	for _, c := range Controllers() {
		if !wanted[c] {
			continue
		}
		p, ok := g.places[c]
		if !ok {
			return fault.New(fault.ErrUnavailable, "the %s limit can't be set: %s", c, h.places[c].missing)
		}
		for _, w := range controls(c, p.version, l) {
			path := filepath.Join(p.parent, w.file)
			if w.optional {
				there, err := exists(path)
				if err != nil {
					return fmt.Errorf("limit %s: %w", c, err)
				}
				if !there {
					continue
				}
			}
			if err := writeControl(path, w.value); err != nil {
				return fmt.Errorf("limit %s: %w", c, err)
			}
		}
	}
	return nil
}

// Singly has the kernel end one process where memory is short, and not the whole group: what
// Create sets in version 2, and version 1 always does.
func (g *Group) Singly() error {
	p, ok := g.places[Memory]
	if !ok || p.version == 1 {
		return nil
	}
	path := filepath.Join(p.parent, "memory.oom.group")
	there, err := exists(path)
	if err != nil || !there {
		return err // Linux before 4.19 has no such file, and ends one at a time.
	}
	return writeControl(path, "0")
}

// control is one write that sets a limit.
type control struct {
	file, value string
	optional    bool // swap accounting and the like may be off in the kernel
}

func controls(c Controller, version int, l Limits) []control {
	memory := strconv.FormatInt(l.MemoryBytes, 10)
	quota := strconv.FormatInt(max(1000, int64(l.CPU*cpuPeriod)), 10) // The kernel takes no less than 1 ms.
	period := strconv.Itoa(cpuPeriod)
	switch {
	case c == Pids:
		return []control{{file: "pids.max", value: strconv.Itoa(l.Pids)}}
	case c == Memory && version == 1:
		return []control{
			// The kernel refuses a limit above that with swap, which an earlier call may have set.
			{file: "memory.memsw.limit_in_bytes", value: "-1", optional: true},
			{file: "memory.limit_in_bytes", value: memory},
			{file: "memory.memsw.limit_in_bytes", value: memory, optional: true},
		}
	case c == Memory:
		return []control{
			{file: "memory.max", value: memory},
			{file: "memory.swap.max", value: "0", optional: true},
			{file: "memory.oom.group", value: "1", optional: true}, // A sandbox dies as a whole.
		}
	}
	var all []control
	if l.CPU > 0 && version == 1 {
		all = append(all, control{file: "cpu.cfs_period_us", value: period}, control{file: "cpu.cfs_quota_us", value: quota})
	} else if l.CPU > 0 {
		all = append(all, control{file: "cpu.max", value: quota + " " + period})
	}
	if l.Weight > 0 && version == 1 {
		all = append(all, control{file: "cpu.shares", value: strconv.Itoa(1024 * l.Weight / 100)})
	} else if l.Weight > 0 {
		all = append(all, control{file: "cpu.weight", value: strconv.Itoa(l.Weight)})
	}
	return all
}

// Joins lists the files into which a thread writes "0" to put itself, with
// what it starts or becomes later, into the group. In version 1 it moves alone:
// for a whole process the kernel first waits, some ten milliseconds long, until
// no process anywhere forks or exits.
func (g *Group) Joins() []string {
	var files []string
	for _, p := range g.places {
		name := "tasks"
		if p.version == 2 {
			name = "cgroup.procs"
		}
		if file := filepath.Join(p.parent, name); !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

// Stats reads what the group uses; a controller that is missing reads zero.
func (g *Group) Stats() (Stats, error) {
	var s Stats
	var errs []error
	read := func(c Controller, v1, v2 string, into *int64) {
		p, ok := g.places[c]
		if !ok {
			return
		}
		file := v1
		if p.version == 2 {
			file = v2
		}
		n, err := readNumber(filepath.Join(p.parent, file))
		*into = n
		errs = append(errs, err)
	}
	var pids int64
	read(Memory, "memory.usage_in_bytes", "memory.current", &s.MemoryBytes)
	read(Pids, "pids.current", "pids.current", &pids)
	s.Pids = int(pids)
	if p, ok := g.places[CPU]; ok && p.version == 2 {
		micros, err := readKey(filepath.Join(p.parent, "cpu.stat"), "usage_usec")
		s.CPUNanos = micros * int64(time.Microsecond)
		errs = append(errs, err)
	} else {
		read(cpuacct, "cpuacct.usage", "", &s.CPUNanos)
	}
	return s, errors.Join(errs...)
}

// Throttled counts the periods in which the group had computed as much as it may, and had
// to wait.
func (g *Group) Throttled() (int64, error) {
	p, ok := g.places[CPU]
	if !ok {
		return 0, nil
	}
	return readKey(filepath.Join(p.parent, "cpu.stat"), "nr_throttled")
}

// PidsRefused counts the processes and threads that the kernel refused the group because it
// had as many as it may.
func (g *Group) PidsRefused() (int64, error) {
	p, ok := g.places[Pids]
	if !ok {
		return 0, nil
	}
	return readKey(filepath.Join(p.parent, "pids.events"), "max")
}

// OOMKills counts the group's processes that the kernel killed for memory.
func (g *Group) OOMKills() (int64, error) {
	p, ok := g.places[Memory]
	if !ok {
		return 0, nil
	}
	file := "memory.oom_control"
	if p.version == 2 {
		file = "memory.events"
	}
	return readKey(filepath.Join(p.parent, file), "oom_kill")
}
