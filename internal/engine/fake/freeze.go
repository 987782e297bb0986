package fake

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

var _ engine.Freezer = (*Instance)(nil)

// Freeze stops the process and writes an image that names it.
func (i *Instance) Freeze(ctx context.Context, dir string) error {
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
	if err := i.engine.keeper.Freeze(ctx, keeper.Freeze{ID: i.id}); err != nil {
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
		return errors.Join(err, i.engine.keeper.Thaw(ctx, keeper.Launch{ID: i.id}))
	}
	return nil
}

// Thaw lets the process go on, if its image is whole.
func (i *Instance) Thaw(ctx context.Context, dir string) error {
	known, err := i.engine.keeper.Get(ctx, i.id)
	if err != nil {
		return err
	}
	if !known.Frozen && !known.Moving {
		return nil
	}
	if err := image.Verify(dir, i.id); err != nil {
		return err
	}
	return i.engine.keeper.Thaw(context.WithoutCancel(ctx), keeper.Launch{ID: i.id})
}

// FreezeFiles is refused: the image of a process that was stopped is the process.
func (*Instance) FreezeFiles(context.Context, string) error {
	return fault.New(fault.ErrUnavailable, "the fake engine starts no process anew")
}
