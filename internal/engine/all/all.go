// Package all lists the engines of this version. A new engine is a folder
// beside it and a line here.
package all

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/engine/runc"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// Default is the engine of who asks for none.
const Default = gvisor.Name

// Config says where engines find their programs and keep their files.
type Config struct {
	Runsc    string // the runsc binary
	RunscDir string // runsc's own states and sockets; in the runtime directory
	StateDir string // instances' files are in StateDir/sandboxes/<id>/<engine>
	RuncDir  string // runc's own states; in the runtime directory
	// Place is an empty directory for mounts that only containers see; its own parents let
	// every user pass.
	Place string
	// Stage is the argv that runs Stage; an engine's name and an instance's folder follow.
	Stage []string
}

// Engines makes every engine, by the name that a policy's `isolation` and
// --isolation say. Whether one can run here, its Capabilities tell.
func Engines(cfg Config, k *keeper.Client) map[string]engine.Engine {
	engines := map[string]engine.Engine{}
	for _, e := range []engine.Engine{
		gvisor.New(gvisor.Config{Runsc: cfg.Runsc, Root: cfg.RunscDir, StateDir: cfg.StateDir}, k),
		runc.New(runc.Config{
			Root: cfg.RuncDir, StateDir: cfg.StateDir, Place: cfg.Place, Stage: append(slices.Clone(cfg.Stage), runc.Name),
		}, k),
	} {
		engines[e.Name()] = e
	}
	return engines
}

// Stage is what a process of this binary does for an engine's instance, in the instance's
// folder, before it becomes the engine's program. It returns on errors only.
func Stage(name, dir string) error {
	if name == runc.Name {
		return runc.Stage(dir)
	}
	return fault.Invalid("the engine %q has no stage", name)
}
