// Package all lists the engines of this version. A new engine is a folder
// beside it and a line here.
package all

import (
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// Default is the engine of who asks for none.
const Default = gvisor.Name

// Config says where engines find their programs and keep their files.
type Config struct {
	Runsc    string // the runsc binary
	RunscDir string // runsc's own states and sockets; in the runtime directory
	StateDir string // instances' files are in StateDir/sandboxes/<id>/<engine>
}

// Engines makes every engine, by the name that a policy's `isolation` and
// --engine say. Whether one can run here, its Capabilities tell.
func Engines(cfg Config, k *keeper.Client) map[string]engine.Engine {
	engines := map[string]engine.Engine{}
	for _, e := range []engine.Engine{
		gvisor.New(gvisor.Config{Runsc: cfg.Runsc, Root: cfg.RunscDir, StateDir: cfg.StateDir}, k),
	} {
		engines[e.Name()] = e
	}
	return engines
}
