package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

var _ engine.Freezer = (*Instance)(nil)

// freezeTimeout bounds a freeze or thaw, which goes on though its caller has
// given up: half of one would be neither running nor frozen.
const freezeTimeout = 10 * time.Minute

// Freeze has the keeper hold the guest still, write memory and file systems to
// dir and only then kill the processes: a checkpoint that fails, for a full
// disk say, is taken back, and the guest goes on. runsc's own way, to end the
// sandbox with the checkpoint, ends it with a failed one too.
//
// An instance that is frozen already gets its seal, if a daemon died before it
// had written it.
func (i *Instance) Freeze(ctx context.Context, dir string) error {
	f, err := i.freezing(dir)
	if err != nil {
		return err
	}
	return i.freeze(ctx, dir, f)
}

// freeze has the keeper do what f says, and seals what that wrote.
func (i *Instance) freeze(ctx context.Context, dir string, f keeper.Freeze) error {
	if i.state.DiskBytes == 0 || i.state.Weak {
		return fault.New(fault.ErrUnavailable, "sandbox %s can't be frozen: it was made by an older version, or for a test", i.id)
	}
	if err := i.engine.canFreeze(); err != nil {
		return err
	}
	known, err := i.engine.keeper.Get(ctx, i.id)
	if err != nil {
		return err
	}
	if known.Frozen && image.Whole(dir) {
		return nil
	}
	if !known.Frozen && !known.Moving {
		if err := image.Make(dir); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	if err := i.engine.home.Freeze(ctx, f); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	i.dropStores()
	if err := image.Seal(dir, i.id); err != nil {
		return errors.Join(err, i.restore(ctx, dir))
	}
	return nil
}

// freezing is what the keeper is to run.
func (i *Instance) freezing(dir string) (keeper.Freeze, error) {
	b := bundle{dir: i.engine.instanceDir(i.id)}
	runsc, err := i.engine.runscFlags(i.state, b)
	if err != nil {
		return keeper.Freeze{}, err
	}
	command := func(args ...string) []string { return append(append([]string{}, runsc...), append(args, i.id)...) }
	return keeper.Freeze{
		ID: i.id, Dir: b.dir, Log: b.logFile(), Env: runscEnvironment(),
		Steps: [][]string{
			command("pause"),
			// Compression costs six times the time for a third of the size.
			command("checkpoint", "--leave-running", "--compression=none", "--image-path="+dir),
		},
		Undo: [][]string{command("resume")},
	}, nil
}

// dropStores gives back the disk behind the instance's memory file systems,
// whose content is in the image. A store that stays costs disk and no more.
func (i *Instance) dropStores() {
	stores, err := filepath.Glob(filepath.Join(i.engine.instanceDir(i.id), "tmpfs-*", ".gvisor.filestore.*"))
	if err != nil {
		return
	}
	for _, store := range stores {
		_ = os.Remove(store)
	}
}

// Thaw restores the instance under the same keeper, with a new socketpair. An
// image that is not what Freeze wrote is refused before anything starts. Of an
// instance that runs it makes sure that the keeper knows its processes.
func (i *Instance) Thaw(ctx context.Context, dir string) error {
	known, err := i.engine.keeper.Get(ctx, i.id)
	if err != nil {
		return err
	}
	if !known.Frozen && !known.Moving && len(known.Pids) > 0 {
		return nil
	}
	if err := image.Verify(dir, i.id); err != nil {
		return err
	}
	shown, err := bundle{dir: i.engine.instanceDir(i.id)}.planned()
	if err != nil {
		return err
	}
	if err := engine.CheckSources(shown); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	return i.restore(ctx, dir)
}

// restore starts the processes and hands them to the keeper.
func (i *Instance) restore(ctx context.Context, dir string) error {
	e := i.engine
	known, err := e.keeper.Get(ctx, i.id)
	if err != nil {
		return err
	}
	if known.Frozen {
		// The record, and what a restore that failed left of itself.
		if err := errors.Join(e.killStrays(ctx, i.id), e.removeRecord(i.id)); err != nil {
			return err
		}
	}
	again := i.restoring
	if filesOnly(dir) {
		again = i.prepareLaunch
	}
	launch, err := again(dir)
	if err != nil {
		return err
	}
	if err := e.keeper.Thaw(ctx, launch); err != nil {
		return err
	}
	if err := e.trackProcesses(ctx, i.id); err != nil { // the guest has run, so that the image is no longer its state
		return errors.Join(
			fmt.Errorf("sandbox %s ended at its thaw: %w", i.id, err),
			e.keeper.Kill(ctx, i.id), e.killStrays(ctx, i.id),
		)
	}
	if launch.Fresh {
		return bundle{dir: e.instanceDir(i.id)}.emptied(filepath.Join(dir, upperName))
	}
	return nil
}

// restoring is the runsc command of a thaw. The control group is the one of
// before, which has kept its limits.
func (i *Instance) restoring(dir string) (keeper.Launch, error) {
	b := bundle{dir: i.engine.instanceDir(i.id)}
	runsc, err := i.engine.runscFlags(i.state, b)
	if err != nil {
		return keeper.Launch{}, err
	}
	launch := keeper.Launch{ID: i.id, Dir: b.dir, Log: b.logFile(), Env: runscEnvironment(), Argv: runsc}
	if i.filled(b) { // the frozen spec names the tar, the bundle's no longer does
		launch.Argv = append(launch.Argv, "--restore-spec-validation=ignore")
	}
	launch.Argv = i.engine.staging(b, append(launch.Argv, "restore", "--detach", "--bundle="+b.dir, "--image-path="+dir, i.id))
	return launch, i.joinGroup(&launch)
}

// joinGroup puts what is launched into the instance's control group.
func (i *Instance) joinGroup(launch *keeper.Launch) error {
	if !i.state.Grouped {
		return nil
	}
	group, err := i.engine.groups().Open(i.id)
	if err != nil {
		return err
	}
	launch.CgroupProcs = group.Joins()
	return nil
}

// canFreeze says why not: runsc can write a sandbox as any user, and restores
// one only as root.
func (e *Engine) canFreeze() error {
	if e.uid != 0 {
		return fault.New(fault.ErrUnavailable, "a sandbox can't be frozen here, because gVisor restores one only as root: run the daemon as root")
	}
	return nil
}
