package copies

import (
	"context"
	"errors"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// MayRestore refuses what an engine can't start here.
func (l *Library) MayRestore(from *Origin, eng engine.Engine, caps engine.Capabilities) error {
	needs := from.Contents.Control()
	if _, ok := eng.(engine.Restorer); !ok || !slices.Contains(caps.Enforces, needs) {
		return fault.New(fault.ErrUnavailable, "the engine %s can't make sandboxes from copies here%s", eng.Name(), caps.Because(needs))
	}
	agent, err := l.cfg.Blueprints.Agent()
	if err != nil {
		return err
	}
	if from.Contents == engine.ContentsMemory && from.Made.Agent != agent {
		return fault.New(fault.ErrConflict, "the copy's memory is of another version of Cofferdam's guest agent, which does not go on with this one; snapshots of files alone can be used over versions")
	}
	return nil
}

// Register makes a copy known to the door. Its content is judged again: by today's advisories and
// the policy's blocklist, and by all of the policy's lists what came under another policy.
func (l *Library) Register(ctx context.Context, run admission.Run, from *Origin) error {
	run.Ancestors = from.Ancestors
	if err := l.cfg.Door.RegisterCopy(ctx, run, from.Facts); err != nil {
		return err
	}
	err := l.cfg.Door.RecheckCopy(ctx, run.Sandbox)
	if err == nil {
		return nil
	}
	l.cfg.Door.Unregister(run.Sandbox)
	what := "the sandbox " + from.Of.ID + " can't be forked"
	if from.Snapshot != "" {
		what = "the snapshot " + from.Snapshot + " can't be used"
	}
	return CantUse(what, err)
}

// CantUse puts what can't be done before the reason.
func CantUse(what string, err error) error {
	category := fault.ErrUnavailable
	if errors.Is(err, fault.ErrForbidden) {
		category = fault.ErrForbidden
	}
	return fault.Wrap(category, err, "%s", what)
}

// Restore makes the instance of a copy, which is on record first.
func (l *Library) Restore(ctx context.Context, eng engine.Engine, spec engine.Spec, from *Origin) (engine.Instance, error) {
	if err := l.cfg.Door.SandboxRestored(ctx, spec.ID, from.Record()); err != nil {
		return nil, err
	}
	restorer, ok := eng.(engine.Restorer)
	if !ok {
		return nil, fault.New(fault.ErrUnavailable, "the engine %s can't make sandboxes from copies", eng.Name())
	}
	inst, err := restorer.Restore(ctx, spec, from.Image)
	if err != nil {
		return nil, err
	}
	faultpoint.Hit(faultpoint.RestoreBooted)
	return inst, nil
}
