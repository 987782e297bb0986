package interpreter

import (
	"context"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
)

// Starter is what starts kernels; commands.Unclaimed is one, too.
type Starter interface {
	// StartKernel starts a kernel that waits for its program, and returns its id: with an error, too,
	// if the kernel may run all the same, as when ctx ended meanwhile.
	StartKernel(ctx context.Context, k commands.Kernel) (string, error)
	// Attach returns a connection with a kernel's frames, which takes input and signals.
	Attach(ctx context.Context, kernel string, offset int64) (net.Conn, error)
	// Signal sends a signal to a kernel's process group, KILL to all that it started. It waits
	// behind no input, and returns when the guest says that it is done.
	Signal(ctx context.Context, kernel, name string) error
}

// Host is a sandbox as its contexts need it; *commands.Table is one.
type Host interface {
	Starter
	// Kernels are those that run, whoever started them.
	Kernels(ctx context.Context) ([]keeper.Command, error)
	// Environment is what commands find. Kernels that were started before the sandbox was
	// claimed are told.
	Environment(ctx context.Context) (map[string]string, error)
	// Cell has a cell judged and recorded; it is the end that ended is told of. A refusal is
	// fault.ErrForbidden.
	Cell(ctx context.Context, c commands.Cell) (id string, ended func(channel.Exit), err error)
	// Limited ends with context.DeadlineExceeded when the time is over that the policy gives
	// a command, of time in which the sandbox waits for nobody.
	Limited(ctx context.Context) (context.Context, context.CancelFunc)
}
