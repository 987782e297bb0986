// Package hostproc is what engines have in common whose instances are processes of this host
// that the keeper holds: their places on disk, their control groups, how they end and
// how they are taken away.
package hostproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// LongestWait bounds what goes on when no caller may be waiting any more: a
// launch that was given up, a sweep.
const LongestWait = 30 * time.Second

// Keeper is what a home needs of the keeper.
type Keeper interface {
	Launch(ctx context.Context, l keeper.Launch) (keeper.Sandbox, error)
	Freeze(ctx context.Context, f keeper.Freeze) error
	Get(ctx context.Context, id string) (keeper.Sandbox, error)
	Signal(ctx context.Context, id string, sig int) error
	Wait(ctx context.Context, id string) (keeper.ProcessExit, error)
	Forget(ctx context.Context, id string) error
}

// Home is where an engine has its instances: the folders <state>/sandboxes/<id>/<engine>
// and control groups below one of its own. Safe for concurrent use.
type Home struct {
	engine, state, parent string
	keeper                Keeper
	stages                cgroup.Limits

	stagingMu sync.Mutex     // guards stagings
	stagings  map[string]int // freezes that use the stage's group, by instance

	// groups and balance are found out once, at first use: what a host offers does not
	// change under a running daemon.
	groups  func() *cgroup.Hierarchy
	balance func() *cgroup.Balance
}

// NewHome makes an engine's in a state directory (absolute); the host is looked at when it
// is first used. parent is the control group that instances' groups are made under, which
// no other home has.
func NewHome(name, state, parent string, uid int, k Keeper) *Home {
	h := &Home{
		engine: name, state: state, parent: parent, keeper: k, stages: DefaultStageLimits(), stagings: map[string]int{},
		groups: sync.OnceValue(func() *cgroup.Hierarchy {
			groups := cgroup.New(cgroup.Config{Parent: parent, UID: uid})
			groups.Tidy() // who only looks leaves nothing; the first instance makes them again
			return groups
		}),
	}
	h.balance = sync.OnceValue(func() *cgroup.Balance { return cgroup.NewBalance(h.groups()) })
	return h
}

// ParentGroup is a control group for an installation's instances: no other's meet them.
func ParentGroup(state string) string { return cgroup.ParentOf(state) }

// Parent is the control group that instances' groups are made under.
func (h *Home) Parent() string { return h.parent }

// Groups are the control groups of its instances.
func (h *Home) Groups() *cgroup.Hierarchy { return h.groups() }

// Tend divides the processors between those whose sandboxes run, until ctx ends.
func (h *Home) Tend(ctx context.Context) { h.balance().Run(ctx) }

// Hurry has somebody's sandboxes go first for the time of a create.
func (h *Home) Hurry(share string) (done func()) { return h.balance().Hurry(share) }

// Path is where an instance's files are.
func (h *Home) Path(id string) string {
	return filepath.Join(h.state, "sandboxes", id, h.engine)
}

// Claim makes the folder of a new instance, whose existence is the claim to the id. Other
// users may pass through it and not list it.
func (h *Home) Claim(id string) (string, error) {
	dir := h.Path(id)
	all := filepath.Dir(filepath.Dir(dir))
	// A daemon with another umask may have made the first, and shut them out.
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o711), os.Chmod(all, 0o711)); err != nil { //nolint:gosec // The sandbox's users pass through to their root.
		return "", err
	}
	err := os.Mkdir(dir, 0o711) //nolint:gosec // As above.
	if errors.Is(err, os.ErrExist) {
		return "", fault.Wrap(fault.ErrConflict, err, "a sandbox %s exists already", id)
	}
	return dir, err
}

// List returns the ids of all instances that have files, running or not.
func (h *Home) List(context.Context) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(h.state, "sandboxes", "*", h.engine))
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for _, dir := range found {
		ids = append(ids, filepath.Base(filepath.Dir(dir)))
	}
	return ids, nil
}

// Find reads the handle of an instance that the keeper still knows; its daemon may have
// been another. state is what the handle carries.
func (h *Home) Find(ctx context.Context, handle engine.Handle, state any) error {
	if handle.Engine != h.engine {
		return fault.Invalid("the handle of %s is of the engine %q, not %q", handle.ID, handle.Engine, h.engine)
	}
	if err := CheckID(handle.ID); err != nil {
		return err
	}
	if err := json.Unmarshal(handle.State, state); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the handle of sandbox %s can't be read", handle.ID)
	}
	if _, err := os.Stat(h.Path(handle.ID)); err != nil {
		return fault.Wrap(fault.ErrNotFound, err, "sandbox %s has no files any more", handle.ID)
	}
	_, err := h.keeper.Get(ctx, handle.ID)
	return err
}

// Controls are those of control groups: what this host enforces, and why not the others.
func (h *Home) Controls(caps *engine.Capabilities) {
	missing := h.groups().Missing()
	for _, c := range cgroup.Controllers() {
		control := controlOf(c)
		if reason, ok := missing[c]; ok {
			caps.Missing[control] = reason
		} else {
			caps.Enforces = append(caps.Enforces, control)
		}
	}
}

func controlOf(c cgroup.Controller) engine.Control {
	switch c {
	case cgroup.Memory:
		return engine.ControlMemory
	case cgroup.CPU:
		return engine.ControlCPU
	default:
		return engine.ControlPids
	}
}

// Group makes the control group with the limits that this host can enforce; Controls has
// said which it can't. tasks are all of the instance's on the host. nil where there are no
// groups.
func (h *Home) Group(spec engine.Spec, tasks int) (*cgroup.Group, error) {
	missing := h.groups().Missing()
	if len(missing) == len(cgroup.Controllers()) {
		return nil, nil //nolint:nilnil // No group is a state of its own: rootless without delegation.
	}
	limits := cgroup.Limits{MemoryBytes: spec.Limits.MemoryBytes, CPU: spec.Limits.CPU, Pids: tasks}
	for c := range missing {
		switch c {
		case cgroup.Memory:
			limits.MemoryBytes = 0
		case cgroup.CPU:
			limits.CPU = 0
		case cgroup.Pids:
			limits.Pids = 0
		}
	}
	return h.groups().Create(spec.Share, spec.ID, limits)
}

// Launch waits for the keeper even when the caller gives up: only then is it known what
// there is to remove.
func (h *Home) Launch(ctx context.Context, l keeper.Launch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limit := LongestWait
	if l.Reset { // the keeper gives the guest as long as that to answer
		limit *= 2
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if _, err := h.keeper.Launch(bounded, l); err != nil {
		return h.explainStart(l.ID, err)
	}
	return ctx.Err()
}

// Remove takes away what is left of an instance without processes: what record removes,
// the control group, the folder and the keeper's memory, in this order: what a List goes by
// is removed late, so that a daemon that dies in between finds the rest again.
func (h *Home) Remove(ctx context.Context, id string, record func() error) error {
	if err := errors.Join(record(), h.RemoveGroups(ctx, id)); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	if err := os.RemoveAll(h.Path(id)); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	// Others may keep files of theirs beside ours.
	_ = os.Remove(filepath.Dir(h.Path(id)))
	if err := h.keeper.Forget(ctx, id); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	return nil
}

// RemoveGroups removes an instance's control groups, in which nothing runs any more.
func (h *Home) RemoveGroups(ctx context.Context, id string) error {
	var errs []error
	for _, open := range []func(string) (*cgroup.Group, error){h.groups().OpenStage, h.groups().Open} {
		group, err := open(id)
		switch {
		case err == nil:
			errs = append(errs, group.Remove(ctx))
		case !errors.Is(err, fault.ErrNotFound):
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Gone tells whether there is nothing of an instance any more: no folder, and nothing that
// the keeper knows. known is what the keeper knows.
func (h *Home) Gone(ctx context.Context, id string) (known keeper.Sandbox, gone bool, err error) {
	known, err = h.keeper.Get(ctx, id)
	if errors.Is(err, fault.ErrNotFound) {
		if _, there := os.Stat(h.Path(id)); errors.Is(there, os.ErrNotExist) {
			return known, true, nil
		}
	}
	return known, false, err
}
