package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// handleState is what a Handle carries.
type handleState struct {
	Container string `json:"container"` // the service's id
	Runtime   string `json:"runtime"`
}

// Instance is one container.
type Instance struct {
	*hostproc.Body

	engine *Engine
	id     string
	state  handleState
}

var _ engine.Snapshotter = (*Instance)(nil)

func (e *Engine) instance(id string, st handleState) *Instance {
	return &Instance{Body: e.home.Body(id, logName, false, st), engine: e, id: id, state: st}
}

func (i *Instance) ownFile(name string) string { return filepath.Join(i.engine.home.Path(i.id), name) }

// Signal has the service send it to PID 1. To stop and to go on, the service holds the whole
// container, whatever its runtime.
func (i *Instance) Signal(ctx context.Context, signal int) error {
	s, err := i.engine.dialService(ctx)
	if err == nil {
		defer s.Close() //nolint:errcheck // nothing is on its way
		err = i.signalContainer(ctx, s, signal)
	}
	switch {
	case err == nil || signal != int(unix.SIGKILL):
		return err
	case isLost(err):
		return i.engine.killFirst(ctx, i.id)
	case i.firstEnded(): // the service has yet to notice, and complains that it can't kill a zombie
		return nil
	}
	return err
}

// firstEnded tells whether the process that the service started is known, and has ended.
func (i *Instance) firstEnded() bool {
	var b born
	if err := readJSON(i.ownFile(bornName), &b); err != nil || b.Process.Pid == 0 {
		return false
	}
	now, err := process.Read(b.Process.Pid)
	return errors.Is(err, process.ErrOver) || err == nil && (now.ID != b.Process || now.Dead)
}

func (i *Instance) signalContainer(ctx context.Context, s service, signal int) error {
	var err error
	switch unix.Signal(signal) {
	case unix.SIGSTOP:
		_, err = s.ContainerPause(ctx, i.state.Container, client.ContainerPauseOptions{})
	case unix.SIGCONT:
		return unpause(ctx, s, i.state.Container)
	default:
		_, err = s.ContainerKill(ctx, i.state.Container, client.ContainerKillOptions{Signal: strconv.Itoa(signal)})
	}
	if conflicts(err) { // it has ended, or is what it is to become
		return nil
	}
	if isGone(err) {
		return fault.Wrap(fault.ErrNotFound, err, "the Docker daemon has no container of sandbox %s any more", i.id)
	}
	return err
}

// Wait returns when the container has ended.
func (i *Instance) Wait(ctx context.Context) (engine.Exit, error) {
	exit, err := i.Body.Wait(ctx)
	if err != nil || exit.Reason == "destroyed" {
		return exit, err
	}
	var e ended
	if readJSON(i.ownFile(endName), &e) == nil && e.OOM && exit.Code != 0 {
		exit.OOM, exit.Reason = true, "out of memory"
	}
	return exit, nil
}

// Stats reads the control groups that the service made.
func (i *Instance) Stats(context.Context) (engine.Stats, error) {
	var b born
	if err := readJSON(i.ownFile(bornName), &b); err != nil || !b.Process.Is() {
		return engine.Stats{}, fault.New(fault.ErrUnavailable, "sandbox %s does not run, so that what it uses can't be counted", i.id)
	}
	group, err := cgroup.OfProcess(b.Process.Pid)
	if err != nil {
		return engine.Stats{}, err
	}
	s, err := group.Stats()
	kills, failed := group.OOMKills()
	throttled, unknown := group.Throttled()
	err = errors.Join(err, failed, unknown)
	if !b.Process.Is() || errors.Is(err, os.ErrNotExist) { // the number may have become another's, in another group
		return engine.Stats{}, fault.Wrap(fault.ErrUnavailable, err, "sandbox %s has ended", i.id)
	}
	if err != nil {
		return engine.Stats{}, err
	}
	return engine.Stats{MemoryBytes: s.MemoryBytes, CPUNanos: s.CPUNanos, Pids: s.Pids, MemoryKills: kills, CPUThrottled: throttled}, nil
}

// Destroy ends the container and removes all that was made for it.
func (i *Instance) Destroy(ctx context.Context) error {
	i.Ends()
	if _, gone, err := i.engine.home.Gone(ctx, i.id); gone {
		return err
	}
	return i.engine.sweepTraces(ctx, i.id)
}

// killFirst kills the process that the service started for a container, without the
// service, and waits for its end.
func (e *Engine) killFirst(ctx context.Context, id string) error {
	var b born
	if err := readJSON(filepath.Join(e.home.Path(id), bornName), &b); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return e.killNameless(ctx, id)
		}
		return err
	}
	return endProcess(ctx, b.Process, func() bool { return true })
}

// killNameless kills the processes of a container of which nobody wrote down the first: the
// service, or the bridge, ended between its start and that. They are found by their control
// groups, whose names have the container's id.
func (e *Engine) killNameless(ctx context.Context, id string) error {
	var t task
	if err := readJSON(filepath.Join(e.home.Path(id), taskName), &t); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil // it never had a container, or everything of it is gone
		}
		return err
	}
	if len(t.Container) < shortestID {
		return fmt.Errorf("%.100q is no container's id", t.Container)
	}
	table, err := process.Table()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range table {
		if !p.Dead && inGroupOf(p.ID, t.Container) {
			errs = append(errs, endProcess(ctx, p.ID, func() bool { return inGroupOf(p.ID, t.Container) }))
		}
	}
	return errors.Join(errs...)
}

// shortestID is the least that an id of a service's container has, in its long form, so that
// no other group's name has it by chance.
const shortestID = 64

// inGroupOf tells whether a process is in a control group that is named for a container.
func inGroupOf(id process.ID, container string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id.Pid), "cgroup"))
	return err == nil && strings.Contains(string(data), container)
}

// endProcess kills a process, if it still is the one that is meant once it is held, and waits for
// its end.
func endProcess(ctx context.Context, id process.ID, meant func() bool) error {
	handle, err := process.Open(id)
	if errors.Is(err, process.ErrOver) {
		return nil
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	if !meant() {
		return nil
	}
	if err := handle.Signal(unix.SIGKILL); err != nil && !errors.Is(err, process.ErrOver) {
		return err
	}
	return handle.Await(ctx)
}
