// Package toy is an engine that isolates nothing: it has the engine that tests use do the
// work. One that a sandbox can have declares what it enforces.
package toy

import (
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Name of the engine.
const Name = "toy"

// Engine starts processes.
type Engine struct{ *fake.Engine }

var _ engine.Engine = Engine{}

// New makes the engine.
func New(stateDir string, k *keeper.Client) Engine { return Engine{fake.New(stateDir, k)} }

// Name is "toy".
func (Engine) Name() string { return Name }
