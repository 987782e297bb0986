package fake

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

var _ engine.Freezer = (*Instance)(nil)

// Freeze stops the process and writes an image that names it.
func (i *Instance) Freeze(ctx context.Context, dir string) error {
	return i.freeze(ctx, dir, keeper.Freeze{ID: i.id})
}

// Thaw lets the process go on, or starts it anew, if its image is whole.
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
	return i.letGoOn(context.WithoutCancel(ctx), dir, known)
}

// freeze has the keeper do what f says, and seals the image.
func (i *Instance) freeze(ctx context.Context, dir string, f keeper.Freeze) error {
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
	ctx = context.WithoutCancel(ctx)
	if err := i.engine.keeper.Freeze(ctx, f); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	data, err := json.Marshal(known.Pids)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pids"), data, 0o600)
	}
	if err == nil {
		err = image.Seal(dir, i.id)
	}
	if err != nil {
		return errors.Join(err, i.letGoOn(ctx, dir, known))
	}
	return nil
}

// letGoOn lets what is frozen run.
func (i *Instance) letGoOn(ctx context.Context, dir string, known keeper.Sandbox) error {
	if filesOnly(dir) {
		return i.startAnew(ctx, dir, known)
	}
	return i.engine.keeper.Thaw(ctx, keeper.Launch{ID: i.id})
}
