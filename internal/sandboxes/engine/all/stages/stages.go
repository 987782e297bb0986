// Package stages lists what other processes do for engines: a line for each engine that has
// some. The program cofferdam-stage is these and nothing else, since it starts with each
// sandbox, and what a program carries it has to begin with.
package stages

import (
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/docker"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/runc"
)

// Stage is what this process does for an engine's instance, in the instance's folder: before
// it becomes the engine's program, for as long as the instance lives, or, with more that is
// the engine's own, to tell the engine's program something, or to write the instance's files
// to the folder of a snapshot.
func Stage(name, dir string, more []string) error {
	switch {
	case name == gvisor.Name:
		return gvisor.Stage(dir, more)
	case name == microvm.Name:
		return microvm.Stage(dir, more)
	case name == runc.Name && len(more) == 0:
		return runc.Stage(dir)
	case name == runc.Name && len(more) == 1:
		return runc.Keep(dir, more[0])
	case name == docker.Name && len(more) == 0:
		return docker.Stage(dir)
	}
	return fault.Invalid("the engine %q has no such stage", name)
}

// Probe says what this process sees, in a container in which an engine started it to find
// out what its walls are worth.
func Probe(name string, to io.Writer) error {
	if name == docker.Name {
		return docker.Probe(to)
	}
	return fault.Invalid("the engine %q starts no probes", name)
}
