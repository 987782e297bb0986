package microvm

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// Sweep destroys what is left of an instance, also processes that the keeper does not know
// (because it, or a stage, died).
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

// destroy is the fast way for an instance whose monitor the keeper tracks: SIGKILL, reaped by
// the keeper, then unlink.
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

// removeFiles removes the control group, the files and the keeper's memory; with the last
// instance the groups above its own.
func (e *Engine) removeFiles(ctx context.Context, id string) error {
	return e.home.Remove(ctx, id, func() error { return nil })
}

// killStrays kills every process of the instance that can be found, by its control group and
// by the folder that a stage and a monitor name in their arguments.
func (e *Engine) killStrays(ctx context.Context, id string) error {
	errs := []error{e.strays(id).Kill(ctx)}
	group, err := e.home.Groups().Open(id)
	switch {
	case err == nil:
		errs = append(errs, group.Kill(ctx))
	case !errors.Is(err, fault.ErrNotFound):
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
