package fake

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

var (
	_ engine.Snapshotter = (*Instance)(nil)
	_ engine.Restorer    = (*Engine)(nil)
)

// tarName is the file of a snapshot.
const tarName = "files.tar"

// noMemory says why it declares no snapshots.
const noMemory = "the fake engine can't copy the memory of processes: its snapshots hold files only"

// Own is the directory of the host whose files are an instance's own: what a
// snapshot holds.
func (e *Engine) Own(id string) string { return filepath.Join(e.instanceDir(id), "files") }

// Snapshot writes the instance's own files. Its processes run on meanwhile, so
// that what they are writing may be there in part.
func (i *Instance) Snapshot(ctx context.Context, dir string, contents engine.Contents) error {
	switch contents {
	case engine.ContentsFiles:
	case engine.ContentsMemory:
		return fault.New(fault.ErrUnavailable, noMemory)
	default:
		return fault.Invalid("a snapshot holds %q or %q, not %q", engine.ContentsMemory, engine.ContentsFiles, contents)
	}
	packing, err := i.engine.packing(i.id, dir)
	if err != nil {
		return err
	}
	if err := image.Make(dir); err != nil {
		return err
	}
	err = i.engine.keeper.Freeze(context.WithoutCancel(ctx), keeper.Freeze{
		ID: i.id, Keep: true, Log: filepath.Join(i.engine.instanceDir(i.id), "init.log"),
		Steps: [][]string{packing},
	})
	if err == nil {
		err = image.Seal(dir, i.id)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// Restore starts a new process, with the files of a snapshot.
func (e *Engine) Restore(ctx context.Context, spec engine.Spec, dir string) (engine.Instance, error) {
	if _, err := new(image.Checker).Verify(dir); err != nil {
		return nil, err
	}
	return e.createInstance(ctx, spec, func(own string) error { return unpack(ctx, dir, own) })
}
