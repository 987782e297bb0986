package mounts

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// spot is a directory or file by where it lies in its file system, which is the same under
// whatever name that, or a part of it, is mounted.
type spot struct {
	device string // as major:minor
	path   string
}

// mounted is a line of the host's table of mounts.
type mounted struct {
	at    string // where it is mounted
	shows spot
}

// mountTable is this thread's table of mounts, the lower ones first.
func mountTable() ([]mounted, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(data)), nil
}

// parseMounts reads mountinfo(5): the third field is the device, the fourth what of its file
// system is shown, and the fifth where.
func parseMounts(text string) []mounted {
	var all []mounted
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 4 {
			all = append(all, mounted{at: unescape.Replace(fields[4]), shows: spot{device: fields[2], path: unescape.Replace(fields[3])}})
		}
	}
	return all
}

// spotOf tells where a path without links lies; ok is false where nothing is mounted above it.
func spotOf(table []mounted, path string) (s spot, ok bool) {
	at := ""
	for _, m := range table {
		if within(path, m.at) && len(m.at) >= len(at) { // of two at one place the later lies above
			at, s, ok = m.at, m.shows, true
		}
	}
	s.path = filepath.Join(s.path, strings.TrimPrefix(path, at))
	return s, ok
}

// checkOtherNames refuses a source that shows the installation's own directories, or a part of
// them, under another name: itself, or by what is mounted below it, which is shown with it.
func (r Rules) checkOtherNames(resolved string) error {
	table, err := mountTable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s can't be mounted: the host's table of mounts can't be read", resolved)
	}
	own, at := showsOwn(table, r.Own, resolved)
	switch {
	case own == "":
		return nil
	case at == resolved:
		return fault.Invalid("%s can't be mounted: it is another name of a place in or above %s, where Cofferdam keeps its own state", resolved, own)
	}
	return fault.Invalid("%s can't be mounted: at %s there is another name of a place in or above %s, where Cofferdam keeps its own state", resolved, at, own)
}

// showsOwn is the first of own directories that a path shows, and where; "" if none.
func showsOwn(table []mounted, owned []string, path string) (own, at string) {
	shown := []mounted{}
	if s, ok := spotOf(table, path); ok {
		shown = append(shown, mounted{at: path, shows: s})
	}
	for _, m := range table {
		if m.at != path && within(m.at, path) {
			shown = append(shown, m)
		}
	}
	for _, own := range owned {
		s, ok := spotOf(table, own)
		if !ok {
			continue
		}
		for _, m := range shown {
			if m.shows.device == s.device && (within(s.path, m.shows.path) || within(m.shows.path, s.path)) {
				return own, m.at
			}
		}
	}
	return "", ""
}

// nameUnder is a path's name below a directory, which may be another than its own: the same
// file may be mounted at both. ok is false where it does not lie there.
func nameUnder(table []mounted, path, dir string) (name string, ok bool) {
	if within(path, dir) {
		return path, true
	}
	s, ok := spotOf(table, path)
	if !ok {
		return "", false
	}
	shown := []mounted{}
	if d, ok := spotOf(table, dir); ok {
		shown = append(shown, mounted{at: dir, shows: d})
	}
	for _, m := range table {
		if within(m.at, dir) {
			shown = append(shown, m)
		}
	}
	for _, m := range shown {
		if m.shows.device == s.device && within(s.path, m.shows.path) {
			return filepath.Join(m.at, strings.TrimPrefix(s.path, m.shows.path)), true
		}
	}
	return "", false
}
