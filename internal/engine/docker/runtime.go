package docker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// runtimeOf is a runtime of the service, as a probe found it.
type runtimeOf struct {
	name      string
	ownKernel bool // what answers inside is not the host's kernel
}

// environment is what PID 1 is told by variables.
func (r runtimeOf) environment() []string {
	if r.ownKernel {
		return nil
	}
	// Without a user namespace the sandbox's users are the host's numbers.
	return []string{channel.SharedUsers + "=1"}
}

// strength of a runtime's wall, by what its name or program says it is; 0 is none that we
// know. What it claims is believed after a probe only.
func strength(name, program string) int {
	said := strings.ToLower(name + " " + program)
	switch {
	case strings.Contains(said, "kata"):
		return 3
	case strings.Contains(said, "runsc") || strings.Contains(said, "gvisor"):
		return 2
	case strings.Contains(said, "runc") || strings.Contains(said, "crun"):
		return 1
	}
	return 0
}

// candidates are the runtimes that a service lists, the strongest first.
func candidates(info system.Info) []string {
	type candidate struct {
		name     string
		strength int
	}
	var all []candidate
	for name, r := range info.Runtimes {
		if _, there := info.Runtimes["runc"]; there && (name == "io.containerd.runc.v2" || name == "io.containerd.runtime.v1.linux") {
			continue // the same under longer names
		}
		if n := strength(name, r.Path+" "+r.Type); n > 0 {
			all = append(all, candidate{name, n})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(b.strength, a.strength),
			cmp.Compare(len(a.name), len(b.name)), // "runc" before "io.containerd.runc.v2"
			cmp.Compare(a.name, b.name),
		)
	})
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}
