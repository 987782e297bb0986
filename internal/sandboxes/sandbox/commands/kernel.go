package commands

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Kernel asks for a process that runs cells: a program of the daemon's own, which nobody else
// has a part in. Its code is judged cell by cell: see Cell.
type Kernel struct {
	Argv []string
	Env  map[string]string
	Dir  string
}

// kernelPrefix begins the ids of kernels. They are no commands of a client: they are not
// listed, have no end on record, and go on in a copy as what they are.
const kernelPrefix = "krn-"

// IsKernel tells the commands that are kernels by their ids.
func IsKernel(id string) bool { return strings.HasPrefix(id, kernelPrefix) }

// StartKernel starts a kernel and returns its id. Its output is kept until somebody attaches. An id that
// comes with an error is that of a kernel that may run, and is being killed.
func (t *Table) StartKernel(ctx context.Context, k Kernel) (string, error) {
	if err := checkCommand(Command{Argv: k.Argv, Env: k.Env, Dir: k.Dir}); err != nil {
		return "", err
	}
	if state := t.place.State(); !state.Usable() {
		return "", state.Refuse(t.place.Info.ID)
	}
	exec := channel.Exec{ID: journal.NewID(kernelPrefix, 6), Argv: k.Argv, Env: k.Env, Dir: k.Dir, User: t.place.Info.Account.User(""), Stdin: true}
	t.place.Inventory.AsRoot(exec.User)
	mayRun, err := t.beginProcess(ctx, start{exec: exec, options: keeper.ExecOptions{RingBytes: ringBytes, AwaitReader: true}})
	if !mayRun {
		return "", err
	}
	return exec.ID, err
}

// Environment is what commands of the sandbox find. A kernel that was started before its
// sandbox was claimed has to be told.
func (t *Table) Environment(ctx context.Context) (map[string]string, error) {
	return t.place.Environment(ctx)
}

// Kernels are those that run, those of an earlier daemon and of a copy's source included.
func (t *Table) Kernels(ctx context.Context) ([]keeper.Command, error) {
	k, err := t.cfg.Keeper.Get(ctx, t.place.Info.ID)
	if err != nil {
		return nil, err
	}
	var all []keeper.Command
	for _, c := range k.Commands {
		if IsKernel(c.ID) && c.Exit == nil {
			all = append(all, c)
		}
	}
	return all, nil
}

// Signal sends a signal to a kernel's process group, KILL to all that it started.
func (t *Table) Signal(ctx context.Context, kernel, name string) error {
	signal, err := json.Marshal(channel.Signal{Name: name, Tree: name == "KILL"})
	if err != nil {
		return err
	}
	return t.cfg.Keeper.Send(ctx, t.place.Info.ID, kernel, channel.FrameSignal, signal)
}
