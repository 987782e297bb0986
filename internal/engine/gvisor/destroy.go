package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// longestWait bounds what goes on when no caller may be waiting any more: a
// launch that was given up, a sweep.
const longestWait = 30 * time.Second

// Sweep destroys what is left of an instance, also processes that the keeper
// does not know (because it, or a starter, died).
func (e *Engine) Sweep(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	return e.sweep(ctx, id)
}

func (e *Engine) sweep(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
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
	known, err := e.keeper.Get(ctx, id)
	if errors.Is(err, fault.ErrNotFound) {
		if _, gone := os.Stat(e.dir(id)); errors.Is(gone, os.ErrNotExist) {
			return nil
		}
	}
	unknown := len(known.Pids) == 0 && known.Exit == nil
	if err != nil || unknown || known.Frozen || known.Moving || e.keeper.Kill(ctx, id) != nil {
		return e.sweep(ctx, id)
	}
	return e.removeFiles(ctx, id)
}

// removeFiles removes runsc's record, the control group, the bundle and the
// keeper's memory, in this order: what a List goes by is removed late, so that
// a daemon that dies in between finds the rest again.
func (e *Engine) removeFiles(ctx context.Context, id string) error {
	errs := []error{e.removeRecord(id)}
	group, err := e.groups().Open(id)
	switch {
	case err == nil:
		errs = append(errs, group.Remove(ctx))
	case !errors.Is(err, fault.ErrNotFound):
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	if err := os.RemoveAll(e.dir(id)); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", id, err)
	}
	// Others may keep files of theirs beside ours.
	_ = os.Remove(filepath.Dir(e.dir(id)))
	if err := e.keeper.Forget(ctx, id); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	return nil
}

// removeRecord removes what runsc knows of a sandbox whose processes are gone.
func (e *Engine) removeRecord(id string) error {
	var errs []error
	for _, path := range []string{
		e.record(id) + ".state", e.record(id) + ".lock", filepath.Join(e.cfg.Root, "runsc-"+id+".sock"),
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
	errs := []error{e.killNaming(ctx, e.dir(id))}
	if group, err := e.groups().Open(id); err == nil {
		errs = append(errs, group.Kill(ctx))
	}
	return errors.Join(errs...)
}
