// Package hostload reads how much memory the host has and how long its programs wait for
// what it has too little of, as Linux tells it below /proc.
package hostload

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Memory is the host's, in bytes.
type Memory struct {
	Total     int64
	Available int64 // what the kernel thinks can be had without swapping
}

// ReadMemory reads a file of the form of /proc/meminfo.
func ReadMemory(path string) (Memory, error) {
	f, err := os.Open(path)
	if err != nil {
		return Memory{}, err
	}
	defer f.Close()
	var m Memory
	wanted := map[string]*int64{"MemTotal": &m.Total, "MemAvailable": &m.Available}
	lines := bufio.NewScanner(f)
	for lines.Scan() && len(wanted) > 0 {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		to := wanted[name]
		if to == nil {
			continue
		}
		var kib int64
		if _, err := fmt.Sscan(rest, &kib); err != nil || kib < 0 || kib > 1<<50 {
			return Memory{}, fmt.Errorf("%s has no number of KiB for %s", path, name)
		}
		*to = kib << 10
		delete(wanted, name)
	}
	if err := lines.Err(); err != nil {
		return Memory{}, err
	}
	if len(wanted) > 0 {
		return Memory{}, fmt.Errorf("%s does not tell how much memory there is, and how much is available", path)
	}
	return m, nil
}

// Pressure is the share of the last ten seconds, from 0 to 1, in which programs of the host
// waited for a resource: some of them, or all that had something to do.
type Pressure struct{ Some, Full float64 }

// ReadPressure reads a directory of the form of /proc/pressure: what there is, by resource
// ("cpu", "memory", "io"). A kernel that does not count it has none, and that is no error.
func ReadPressure(dir string) (map[string]Pressure, error) {
	all := map[string]Pressure{}
	for _, resource := range []string{"cpu", "memory", "io"} {
		text, err := os.ReadFile(filepath.Join(dir, resource))
		switch {
		case errors.Is(err, fs.ErrNotExist) || isPressureOff(err):
			continue
		case err != nil:
			return nil, err
		}
		p, err := parsePressure(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", resource, dir, err)
		}
		all[resource] = p
	}
	return all, nil
}

// parsePressure reads "some avg10=0.12 avg60=... total=...", and the same of full, which older
// kernels do not have of the processor.
func parsePressure(text string) (p Pressure, err error) {
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(line, " ")
		var percent float64
		if _, err := fmt.Sscanf(rest, "avg10=%f", &percent); err != nil {
			return p, fmt.Errorf("%.80q is no line of pressure", line)
		}
		switch kind {
		case "some":
			p.Some = percent / 100
		case "full":
			p.Full = percent / 100
		}
	}
	return p, nil
}
