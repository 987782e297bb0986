package runc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// ownTasks are what an instance has beside what RLIMIT_NPROC counts of each user: the
// agent's threads, and runc's while it starts.
const ownTasks = 128

// Create makes the bundle and the control group, has the keeper start the stage, and hands
// the container's PID 1 to the keeper.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	return e.makeInstance(ctx, spec, "")
}

// makeInstance does what Create does, for every beginning. The spec is complete; upper is a snapshot's file, of
// what is in the root's writable layer, or "".
func (e *Engine) makeInstance(ctx context.Context, spec engine.Spec, upper string) (engine.Instance, error) {
	if err := e.available(ctx); err != nil {
		return nil, err
	}
	if err := mounts.NoDoors(ctx, spec.Mounts); err != nil {
		return nil, err
	}
	ids, err := e.identity(spec)
	if err != nil {
		return nil, err
	}
	dir, err := e.home.Claim(spec.ID)
	if err != nil {
		return nil, err
	}
	inst, err := e.startInstance(ctx, spec, ids, bundle{dir: dir}, upper)
	if err != nil {
		// The caller may have given up; its remains go all the same.
		return nil, errors.Join(err, e.sweepTraces(context.WithoutCancel(ctx), spec.ID))
	}
	return inst, nil
}

// identity maps the owner to the host's user, but never to the host's root: in a container
// nothing but the kernel's own checks stands between that number and what root may do.
// Root's files are shown by mounts that map their owners instead.
func (e *Engine) identity(spec engine.Spec) (identity.Identity, error) {
	switch {
	case spec.Weak:
		return identity.Identity{}, nil
	case remapped(spec.Owner):
		return e.ids().Of(spec.ID, engine.Owner{}, nil)
	}
	return e.ids().Of(spec.ID, spec.Owner, spec.Mounts)
}

// remapped tells whether the owner's files are shown by mounts that map their owners.
func remapped(o engine.Owner) bool { return o.UID != 0 && (o.HostUID == 0 || o.HostGID == 0) }

// makeGroup makes the instance's control group; nil where there is none. A container's kernel is
// the host's, which can end one process of it for want of memory.
func (e *Engine) makeGroup(spec engine.Spec) (*cgroup.Group, error) {
	group, err := e.home.Group(spec, ownTasks+2*spec.Limits.Pids)
	if err != nil || group == nil {
		return nil, err
	}
	return group, group.Singly()
}

func (e *Engine) startInstance(ctx context.Context, spec engine.Spec, ids identity.Identity, b bundle, upper string) (engine.Instance, error) {
	e.placing.RLock()
	defer e.placing.RUnlock()
	if err := errors.Join(os.MkdirAll(e.cfg.Root, 0o700), makePlace(e.cfg.Place)); err != nil {
		return nil, err
	}
	group, err := e.makeGroup(spec)
	if err != nil {
		return nil, err
	}
	path := "/" + e.home.Parent() + "/" + spec.ID // without controllers of ours runc still denies devices there
	if group != nil {
		path = group.Path()
	}
	if err := mounts.Points(spec); err != nil {
		return nil, err
	}
	p := stagePlan{Runc: e.program(), Root: e.cfg.Root, ID: spec.ID, Place: e.cfg.Place, Blanks: mounts.BlanksOf(e.cfg.StateDir), Lower: spec.Root, Upper: upper, UIDs: ids.UIDs, GIDs: ids.GIDs}
	if err := b.writeBundle(spec, ids, p, path); err != nil {
		return nil, err
	}
	meta, err := json.Marshal(e.instance(spec.ID, handleState{Grouped: group != nil}).Handle())
	if err != nil {
		return nil, err
	}
	err = e.home.Launch(ctx, keeper.Launch{
		ID: spec.ID, Dir: b.dir, Log: b.logFile(), Env: runcEnvironment(), Meta: meta,
		Argv: slices.Concat(e.cfg.Stage, []string{b.dir}),
	})
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	first, err := e.firstProcess(spec.ID)
	if err != nil {
		return nil, err
	}
	if err := e.keeper.Track(ctx, spec.ID, []process.ID{first}); err != nil {
		return nil, err
	}
	return e.instance(spec.ID, handleState{Grouped: group != nil}), nil
}

// firstProcess is the container's PID 1, as runc wrote it down when it started: with that start, no
// process that has the number since is taken for it.
func (e *Engine) firstProcess(id string) (process.ID, error) {
	r, err := e.readRecord(id)
	if err != nil {
		return process.ID{}, fmt.Errorf("runc does not say what it started: %w", err)
	}
	if !process.Ordinary(r.Pid) || r.Start == 0 {
		return process.ID{}, fault.New(fault.ErrUnavailable, "runc says that it started process %d at %d", r.Pid, r.Start)
	}
	return process.ID{Pid: r.Pid, Start: r.Start}, nil
}

// makePlace makes the directory for a stage's mounts, or takes one that is root's alone:
// another's could be a link to somewhere.
func makePlace(place string) error {
	if err := os.Mkdir(place, 0o711); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // the sandboxes' users pass through
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(place, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != 0 || st.Mode&0o022 != 0 {
		return fault.New(fault.ErrUnavailable, "%s must be a directory of root's that nobody else may write to; remove it", place)
	}
	for dir := filepath.Dir(place); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 == 0 {
			return fault.New(fault.ErrUnavailable, "the engine runc needs a runtime directory that other users may pass by, which %s forbids; run `chmod o+x %s`, or set COFFERDAM_RUNTIME", dir, dir)
		}
		if dir == "/" {
			return nil
		}
	}
}
