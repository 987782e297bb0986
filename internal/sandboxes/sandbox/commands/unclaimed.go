package commands

import (
	"context"
	"encoding/json"
	"maps"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Unclaimed is a sandbox that is nobody's yet, as far as its first kernel is concerned: there
// is no policy, and no cell runs.
type Unclaimed struct {
	Keeper *keeper.Client
	ID     string
	Home   string // of its user
	// Env is what a kernel finds: the sandbox has not been told of its template's yet.
	Env map[string]string
}

// StartKernel starts a kernel and returns its id.
func (u Unclaimed) StartKernel(ctx context.Context, k Kernel) (string, error) {
	env := map[string]string{}
	maps.Copy(env, u.Env)
	maps.Copy(env, k.Env)
	exec := channel.Exec{ID: journal.NewID(kernelPrefix, 6), Argv: k.Argv, Env: env, Dir: k.Dir, Stdin: true}
	return exec.ID, u.Keeper.Exec(ctx, u.ID, exec, keeper.ExecOptions{RingBytes: ringBytes, AwaitReader: true})
}

// Attach returns a connection with a kernel's frames.
func (u Unclaimed) Attach(ctx context.Context, kernel string, offset int64) (net.Conn, error) {
	return u.Keeper.Attach(ctx, u.ID, kernel, offset)
}

// Signal sends a signal to a kernel's process group, KILL to all that it started.
func (u Unclaimed) Signal(ctx context.Context, kernel, name string) error {
	signal, err := json.Marshal(channel.Signal{Name: name, Tree: name == "KILL"})
	if err != nil {
		return err
	}
	return u.Keeper.Send(ctx, u.ID, kernel, channel.FrameSignal, signal)
}
