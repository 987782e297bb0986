package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// OfProcess is the group that a process is in, whoever made it, to read what it uses.
func OfProcess(pid int) (*Group, error) {
	all, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	path := "/proc/" + strconv.Itoa(pid) + "/cgroup"
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	g := &Group{hierarchy: &Hierarchy{}, places: map[Controller]controllerPlace{}}
	for _, c := range append(Controllers(), cpuacct) {
		version, mount := 1, all.v1[c]
		if mount == "" {
			version, mount = 2, all.unified
		}
		if below, ok := membership(string(data), c, version); ok && mount != "" {
			g.places[c] = controllerPlace{version: version, parent: filepath.Join(mount, below)}
		}
	}
	if len(g.places) == 0 {
		return nil, fmt.Errorf("%s names no control group that is mounted here", path)
	}
	return g, nil
}

// membership finds a controller's line in the form ID:CONTROLLERS:PATH.
func membership(text string, c Controller, version int) (below string, ok bool) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if version == 2 && parts[1] == "" || version == 1 && slices.Contains(strings.Split(parts[1], ","), string(c)) {
			return parts[2], true
		}
	}
	return "", false
}
