// Package all lists the engines of this version. A new engine is a folder
// beside it and a line here.
package all

import (
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/docker"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/runc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/wasm"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Default is the engine of who asks for none.
const Default = gvisor.Name

// Config says where engines find their programs and keep their files.
type Config struct {
	Runsc string // the runsc binary
	// Programs has second names of programs, by which they are started; Writable are the directories in which sandboxes
	// may write, or could.
	Programs string
	Writable func() []hostpath.Tree
	RunscDir string // runsc's own states and sockets; in the runtime directory
	StateDir string // instances' files are in StateDir/sandboxes/<id>/<engine>
	RuncDir  string // runc's own states; in the runtime directory
	// Place is an empty directory for mounts that only containers see; its own parents let
	// every user pass.
	Place string
	// Stage is the argv that runs stages.Stage; an engine's name and the folders follow.
	Stage []string
	// Stages are the limits of programs that write an instance's files.
	Stages cgroup.Limits
	// Docker is the socket of a Docker daemon, as unix://PATH; "" is the usual one.
	Docker string
	// Grounds is a directory for mounts that a Docker daemon shows to containers.
	Grounds string
	// Probe is the argv that runs stages.Probe: a static program's path on the host, and its
	// arguments; an engine's name follows.
	Probe []string
	// Kernel is a directory with a kernel for engines that boot one; "" is the host's root.
	Kernel string
	// Monitor is the program that runs machines; "" is the best that there is.
	Monitor string
	// Agent is the guest agent's program.
	Agent func() ([]byte, error)
	Log   *slog.Logger // what goes wrong in the background; nil: nobody is told
}

// Engines makes every engine, by the name that a policy's `isolation` and
// --isolation say. Whether one can run here, its Capabilities tell.
func Engines(cfg Config, k *keeper.Client) map[string]engine.Engine {
	engines := map[string]engine.Engine{}
	for _, e := range []engine.Engine{
		gvisor.New(gvisor.Config{Runsc: cfg.Runsc, Programs: cfg.Programs, Writable: cfg.Writable, Root: cfg.RunscDir, StateDir: cfg.StateDir, Stage: append(slices.Clone(cfg.Stage), gvisor.Name), Stages: cfg.Stages}, k),
		runc.New(runc.Config{
			Writable: cfg.Writable, Root: cfg.RuncDir, StateDir: cfg.StateDir, Place: cfg.Place, Stage: append(slices.Clone(cfg.Stage), runc.Name), Stages: cfg.Stages,
		}, k),
		docker.New(docker.Config{
			Host: cfg.Docker, Writable: cfg.Writable, StateDir: cfg.StateDir, Place: cfg.Grounds, Stage: append(slices.Clone(cfg.Stage), docker.Name), Stages: cfg.Stages,
			Probe: append(slices.Clone(cfg.Probe), docker.Name), Log: cfg.Log,
		}, k),
		microvm.New(microvm.Config{
			Monitor: cfg.Monitor, Writable: cfg.Writable, Kernel: cfg.Kernel, StateDir: cfg.StateDir, Agent: cfg.Agent, Stage: append(slices.Clone(cfg.Stage), microvm.Name), Stages: cfg.Stages,
		}, k),
	} {
		engines[e.Name()] = e
	}
	return engines
}

// DefaultCaller is the engine of calls of who asks for none.
const DefaultCaller = wasm.Name

// Callers makes every engine of calls, by the name that a policy's `isolation` says.
// cacheDir keeps what they compile; they start with their first call.
func Callers(cacheDir string) map[string]engine.Caller {
	callers := map[string]engine.Caller{}
	for _, c := range []engine.Caller{wasm.New(wasm.Config{CacheDir: filepath.Join(cacheDir, wasm.Name)})} {
		callers[c.Name()] = c
	}
	return callers
}

// CallerNames are the names of engines of calls, which make no sandboxes.
func CallerNames() []string { return []string{wasm.Name} }
