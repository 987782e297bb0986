package docker

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// runtimeOf is a runtime of the service, as a probe found it.
type runtimeOf struct {
	name      string
	ownKernel bool // what answers inside is not the host's kernel
	wall      engine.Wall
}

// proved is a runtime that a probe showed to work. A kernel of its own is of a machine, of
// which nobody knows that the processor makes it, or in user space.
func proved(name string, info system.Info, ownKernel bool) runtimeOf {
	r := runtimeOf{name: name, ownKernel: ownKernel, wall: engine.WallContainer}
	switch program := info.Runtimes[name]; {
	case ownKernel && strength(name, program.Path+" "+program.Type) == kata:
		r.wall = engine.WallEmulated
	case ownKernel:
		r.wall = engine.WallUserKernel
	}
	return r
}

// The strengths of runtimes that we know.
const (
	runc = iota + 1
	runsc
	kata
)

// guestEnvironment is what PID 1 is told by variables.
func (r runtimeOf) guestEnvironment() []string {
	if r.ownKernel {
		return nil
	}
	// Without a user namespace the sandbox's users are the host's numbers.
	return []string{channel.SharedUsers + "=1"}
}

// strength of a runtime's wall, by what its name or program says it is; 0 is none that we
// know. Its claim is believed after a probe only.
func strength(name, program string) int {
	said := strings.ToLower(name + " " + program)
	switch {
	case strings.Contains(said, "kata"):
		return kata
	case strings.Contains(said, "runsc") || strings.Contains(said, "gvisor"):
		return runsc
	case strings.Contains(said, "runc") || strings.Contains(said, "crun"):
		return runc
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
