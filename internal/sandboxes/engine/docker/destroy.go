package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// Sweep destroys what is left of an instance, also of one that has no files any more.
func (e *Engine) Sweep(ctx context.Context, id string) error {
	if err := hostproc.CheckID(id); err != nil {
		return err
	}
	return e.sweepTraces(ctx, id)
}

// sweepTraces ends the container, then its bridge, which so hears how, and takes away the ground,
// the files and the keeper's memory, in this order: what a List goes by goes last.
func (e *Engine) sweepTraces(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, hostproc.LongestWait)
	defer cancel()
	removed := e.removeContainers(ctx, id)
	if removed != nil {
		// Whatever the service does, nothing of it runs on.
		ended := e.killFirst(ctx, id)
		if isLost(removed) {
			removed = nil // It keeps its record of a container that does not run. Tend removes it.
		}
		removed = errors.Join(removed, ended)
	}
	killed := e.keeper.Kill(ctx, id)
	if errors.Is(killed, fault.ErrNotFound) {
		killed = nil
	}
	if err := errors.Join(removed, killed, e.strays(id).Kill(ctx), e.takeGround(ctx, id)); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	if err := e.home.RemoveGroups(ctx, id); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	if err := os.RemoveAll(e.home.Path(id)); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	// Others may keep files of theirs beside ours.
	_ = os.Remove(filepath.Dir(e.home.Path(id)))
	_ = os.Remove(e.cfg.Place) // as long as no other has a ground there
	if err := e.keeper.Forget(ctx, id); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	return nil
}

// strays are bridges that the keeper does not know.
func (e *Engine) strays(id string) hostproc.Strays {
	return hostproc.Strays{Dir: e.home.Path(id), Runs: func(pid int) bool { return hostproc.RunsStage(pid, e.cfg.Stage) }}
}
