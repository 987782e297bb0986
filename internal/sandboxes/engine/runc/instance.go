package runc

import (
	"context"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// handleState is what a Handle carries.
type handleState struct {
	Grouped bool `json:"grouped"` // there is a control group
}

// Instance is one container.
type Instance struct {
	*hostproc.Body

	engine *Engine
	id     string
}

var _ engine.Instance = (*Instance)(nil)

func (e *Engine) instance(id string, st handleState) *Instance {
	return &Instance{Body: e.home.Body(id, logName, st.Grouped, st), engine: e, id: id}
}

// Signal sends a signal to PID 1, and to all processes of its pid namespace what PID 1
// alone would not pass on: that they stop, or go on.
func (i *Instance) Signal(ctx context.Context, signal int) error {
	if err := i.Body.Signal(ctx, signal); err != nil || signal != int(unix.SIGSTOP) && signal != int(unix.SIGCONT) {
		return err
	}
	first, err := i.firstProcess(ctx)
	if err != nil {
		return err
	}
	return signalOthers(first, unix.Signal(signal))
}

// firstProcess is PID 1 as the host knows it. A keeper of an older version tells its number alone:
// that is still its own if the keeper, who waits for it, knows it after its start was read.
func (i *Instance) firstProcess(ctx context.Context) (process.ID, error) {
	known, err := i.engine.keeper.Get(ctx, i.id)
	switch {
	case err != nil:
		return process.ID{}, err
	case len(known.Processes) > 0:
		return known.Processes[0], nil
	case len(known.Pids) == 0:
		return process.ID{}, process.ErrOver
	}
	first, err := process.Of(known.Pids[0])
	if err != nil {
		return process.ID{}, err
	}
	again, err := i.engine.keeper.Get(ctx, i.id)
	if err != nil || len(again.Pids) == 0 || again.Pids[0] != first.Pid {
		return process.ID{}, errors.Join(err, process.ErrOver)
	}
	return first, nil
}

// signalOthers reaches all that PID 1 has around it: first is that process as the host knows
// it, and one that has its number later is not taken for it. A stopped process starts no other,
// so that a second look that finds nobody new has found all.
func signalOthers(first process.ID, signal unix.Signal) error {
	held, err := holdNamespace(first.Pid) // while it is open, no other namespace has its name
	if err != nil {
		return err
	}
	defer held.Close()
	if !first.Is() { // asked now that it is held
		return process.ErrOver
	}
	// Of what is held: the process may be over by now, and its number another's.
	inside, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(held.Fd())))
	own, ownErr := namespaceOf(os.Getpid())
	if err := errors.Join(err, ownErr); err != nil {
		return err
	}
	if inside == own {
		return fault.New(fault.ErrUnavailable, "the first process of the sandbox is in the pid namespace of this process: nobody is signalled")
	}
	reached := map[process.ID]bool{}
	for {
		table, err := process.Table()
		if err != nil {
			return err
		}
		found := false
		for _, p := range table {
			if p.ID == first || p.Dead || reached[p.ID] {
				continue
			}
			if of, err := namespaceOf(p.Pid); err != nil || of != inside {
				continue // it has ended, or is another's
			}
			reached[p.ID], found = true, true
			if err := p.Signal(signal); err != nil && !errors.Is(err, process.ErrOver) {
				return err
			}
		}
		if !found {
			return nil
		}
	}
}

// namespaceOf names the pid namespace of a process.
func namespaceOf(pid int) (string, error) { return os.Readlink(namespacePath(pid)) }

// holdNamespace keeps the pid namespace of a process from going away.
func holdNamespace(pid int) (*os.File, error) { return os.Open(namespacePath(pid)) }

func namespacePath(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/pid" }

// Destroy ends the container and removes all that was made for it.
func (i *Instance) Destroy(ctx context.Context) error {
	i.Ends()
	return i.engine.destroy(ctx, i.id)
}
