package hostpath

import (
	"os"
	"path/filepath"
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
	At    string // where it is mounted
	Shows Spot
}

// Table is the host's table of mounts, the lower ones first.
type Table []Mounted

// ReadTable is this thread's table of mounts.
func ReadTable() (Table, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	return ParseTable(string(data)), nil
}

// ParseTable reads mountinfo(5): the third field is the device, the fourth what of its file
// system is shown, and the fifth where.
func ParseTable(text string) Table {
	var all Table
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 4 {
			all = append(all, Mounted{At: unescape.Replace(fields[4]), Shows: Spot{Device: fields[2], Path: unescape.Replace(fields[3])}})
		}
	}
	return all
}

// SpotOf tells where a path without links lies; ok is false where nothing is mounted above it.
func (table Table) SpotOf(path string) (s Spot, ok bool) {
	at := ""
	for _, m := range table {
		if isBelow(path, m.At) && len(m.At) >= len(at) { // of two at one place the later lies above
			at, s, ok = m.At, m.Shows, true
		}
	}
	s.Path = filepath.Join(s.Path, strings.TrimPrefix(path, at))
	return s, ok
}

// NameUnder is a path's name below a directory, which may be another than its own: the same
// file may be mounted at both. ok is false where it does not lie there.
func (table Table) NameUnder(path, dir string) (name string, ok bool) {
	if isBelow(path, dir) {
		return path, true
	}
	s, ok := table.SpotOf(path)
	if !ok {
		return "", false
	}
	shown := Table{}
	if d, ok := table.SpotOf(dir); ok {
		shown = append(shown, Mounted{At: dir, Shows: d})
	}
	for _, m := range table {
		if isBelow(m.At, dir) {
			shown = append(shown, m)
		}
	}
	for _, m := range shown {
		if m.Shows.Device == s.Device && isBelow(s.Path, m.Shows.Path) {
			return filepath.Join(m.At, strings.TrimPrefix(s.Path, m.Shows.Path)), true
		}
	}
	return "", false
}

// isBelow reports whether path is root or below it. Both are clean.
func isBelow(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
