package gvisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// Sweep destroys what is left of an instance, also processes that the keeper
// does not know (because it, or a starter, died).
func (e *Engine) Sweep(ctx context.Context, id string) error {
	if err := hostproc.CheckID(id); err != nil {
		return err
	}
	return e.sweepTraces(ctx, id)
}

func (e *Engine) sweepTraces(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, hostproc.LongestWait)
	defer cancel()
	killed := e.keeper.Kill(ctx, id)
	if errors.Is(killed, fault.ErrNotFound) {
		killed = nil
	}
	return errors.Join(killed, e.killStrays(ctx, id), e.removeFiles(ctx, id))
}

// destroy is the fast way for an instance whose processes the keeper tracks:
// SIGKILL, reaped by the keeper, then unlink. Where it doesn't (another keeper,
// or a daemon that died between the launch and the tracking), they are looked
// for.
func (e *Engine) destroy(ctx context.Context, id string) error {
	known, gone, err := e.home.Gone(ctx, id)
	if gone {
		return nil
	}
	unknown := len(known.Pids) == 0 && known.Exit == nil
	if err != nil || unknown || known.Frozen || known.Moving || e.keeper.Kill(ctx, id) != nil {
		return e.sweepTraces(ctx, id)
	}
	return e.removeFiles(ctx, id)
}

// removeFiles removes runsc's record, the control group, the bundle and the keeper's memory.
func (e *Engine) removeFiles(ctx context.Context, id string) error {
	return e.home.Remove(ctx, id, func() error { return e.removeRecord(id) })
}

// removeRecord removes what runsc knows of a sandbox whose processes are gone.
func (e *Engine) removeRecord(id string) error {
	var errs []error
	for _, path := range []string{
		e.recordPath(id) + ".state", e.recordPath(id) + ".lock", filepath.Join(e.cfg.Root, "runsc-"+id+".sock"),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// killStrays kills every process of the sandbox that can be found, by its control
// group and by the bundle that runsc's processes name in their arguments, and
// waits until they are gone.
func (e *Engine) killStrays(ctx context.Context, id string) error {
	errs := []error{e.strays(id).Kill(ctx)}
	if group, err := e.groups().Open(id); err == nil {
		errs = append(errs, group.Kill(ctx))
	}
	return errors.Join(errs...)
}
