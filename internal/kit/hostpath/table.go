package hostpath

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Spot is a directory or file by where it lies in its file system, which is the same under
// whatever name that, or a part of it, is mounted.
type Spot struct {
	Device string // as major:minor
	Path   string
}

// Mounted is a line of the host's table of mounts.
type Mounted struct {
	ID     string
	Parent string // the ID of the mount on which it is mounted
	At     string // where it is mounted
	Shows  Spot
	Type   string // of the file system: "ext4", "proc"
}

// Table is the host's table of mounts, the lower ones first.
type Table []Mounted

// ReadTable reads this thread's table of mounts.
func ReadTable() (Table, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	return ParseTable(string(data)), nil
}

// ParseTable reads mountinfo(5): the first two fields are the mount's and its parent's IDs, the
// third is the device, the fourth what of its file system is shown, the fifth where, and the one behind a "-" the file
// system's type.
func ParseTable(text string) Table {
	var all Table
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text) {
		// A space alone parts fields: a name may have any other blank as it is.
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(fields) < 5 {
			continue
		}
		m := Mounted{ID: fields[0], Parent: fields[1], At: unescape.Replace(fields[4]), Shows: Spot{Device: fields[2], Path: unescape.Replace(fields[3])}}
		if end := slices.Index(fields[5:], "-"); end >= 0 && len(fields) > 5+end+1 {
			m.Type = fields[5+end+1]
		}
		all = append(all, m)
	}
	return all
}

// SpotOf tells where a path without links lies; ok is false where nothing is mounted above it.
func (table Table) SpotOf(path string) (s Spot, ok bool) {
	m, ok := table.mountOf(path)
	if !ok {
		return Spot{Path: filepath.Clean(path)}, false
	}
	return Spot{Device: m.Shows.Device, Path: filepath.Join(m.Shows.Path, strings.TrimPrefix(path, m.At))}, true
}

// mountOf is the mount in which a path lies. It goes as the kernel does, from mount to mount on
// the way, since the mount with the longest name may be hidden: under one that came later at a
// directory above it.
func (table Table) mountOf(path string) (m Mounted, ok bool) {
	for range len(table) + 1 { // no mount is passed twice
		next, found := Mounted{}, false
		for _, one := range table {
			if !isBelow(path, one.At) || found && len(one.At) > len(next.At) {
				continue
			}
			onWay := one.Parent == m.ID && one.ID != m.ID
			if !ok { // where the way begins: no mount that this process sees bears it
				onWay = one.ID == one.Parent || !table.hasMount(one.Parent)
			}
			if onWay {
				next, found = one, true
			}
		}
		if !found {
			break
		}
		m, ok = next, true
	}
	return m, ok
}

func (table Table) hasMount(id string) bool {
	return slices.ContainsFunc(table, func(m Mounted) bool { return m.ID == id })
}

// NameUnder returns a path's name below a directory, which may be another than its own: the same
// file may be mounted at both. ok is false where it does not lie there.
func (table Table) NameUnder(path, dir string) (name string, ok bool) {
	names := table.NamesUnder(path, dir)
	if len(names) == 0 {
		return "", false
	}
	return names[0], true
}

// NamesUnder are all names that a path has below a directory, its own first.
func (table Table) NamesUnder(path, dir string) []string {
	spot, known := table.SpotOf(path)
	return table.shownIn(dir).namesOf(path, dir, spot, known)
}

// Shown is what whoever is shown a path sees of the mounts: the path itself, as a part of the one in which it lies, and
// what is mounted at and below it.
func (table Table) Shown(path string) Table {
	shown := table.shownIn(path)
	if m, ok := table.mountOf(path); ok {
		shown[0].Type = m.Type
	}
	return shown
}

// shownIn is what a directory shows: the directory itself, and what is mounted below it.
func (table Table) shownIn(dir string) (shown Table) {
	if d, ok := table.SpotOf(dir); ok {
		shown = append(shown, Mounted{At: dir, Shows: d})
	}
	for _, m := range table {
		if isBelow(m.At, dir) {
			shown = append(shown, m)
		}
	}
	return shown
}

// namesOf is NamesUnder for what a directory shows, of a path whose spot is known, if it is.
func (table Table) namesOf(path, dir string, spot Spot, known bool) (names []string) {
	if isBelow(path, dir) {
		names = append(names, path)
	}
	if !known {
		return names
	}
	for _, m := range table {
		if m.Shows.Device != spot.Device || !isBelow(spot.Path, m.Shows.Path) {
			continue
		}
		if name := filepath.Join(m.At, strings.TrimPrefix(spot.Path, m.Shows.Path)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isBelow reports whether path is root or below it. Both are clean.
func isBelow(path, root string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")) // no new string: tables are long, and are asked often
	return path == root || ok && strings.HasPrefix(rest, "/")
}
