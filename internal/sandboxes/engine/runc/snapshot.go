package runc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

var (
	_ engine.Snapshotter = (*Instance)(nil)
	_ engine.Restorer    = (*Engine)(nil)
)

// snapshotTimeout bounds a snapshot, which goes on though its caller has given up.
const snapshotTimeout = 10 * time.Minute

// Files of a snapshot.
const (
	recipeName = "recipe.json"
	upperName  = "upper" // what was written to the root, with what was deleted
)

const (
	recipeVersion = 1
	maxRecipe     = 1 << 20
)

// snapshotRecipe says what a snapshot needs to be restored.
type snapshotRecipe struct {
	Version int         `json:"version"`
	Sandbox string      `json:"sandbox"`
	Root    engine.Root `json:"root"` // under the files
}

// Snapshot has the keeper hold the guest still, and runc all that runs in the container,
// while another stage writes the root's writable layer to dir.
func (i *Instance) Snapshot(ctx context.Context, dir string, contents engine.Contents) error {
	switch contents {
	case engine.ContentsFiles:
	case engine.ContentsMemory:
		return fault.New(fault.ErrUnavailable, "%s", noSnapshot)
	default:
		return fault.Invalid("a snapshot holds %q or %q, not %q", engine.ContentsMemory, engine.ContentsFiles, contents)
	}
	made, err := i.recipe()
	if err != nil {
		return err
	}
	if err := image.Make(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
	defer cancel()
	err = i.engine.home.Freeze(ctx, i.snapshotting(dir))
	if err == nil {
		err = made.writeRecipe(dir)
	}
	if err == nil {
		err = i.engine.images.Seal(dir, i.id)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// snapshotting is what the keeper is to run.
func (i *Instance) snapshotting(dir string) keeper.Freeze {
	e := i.engine
	b := bundle{dir: e.home.Path(i.id)}
	runc := func(command string) []string { return []string{e.program(), "--root", e.cfg.Root, command, i.id} }
	return keeper.Freeze{
		ID: i.id, Keep: true, Dir: b.dir, Log: b.logFile(), Env: runcEnvironment(),
		Steps: [][]string{runc("pause"), slices.Concat(e.cfg.Stage, []string{b.dir, dir}), runc("resume")},
		Undo:  [][]string{runc("resume")},
	}
}

// recipe is that of a snapshot of the instance.
func (i *Instance) recipe() (snapshotRecipe, error) {
	b := bundle{dir: i.engine.home.Path(i.id)}
	p, err := b.planned()
	if err == nil {
		_, err = b.writable()
	}
	if err != nil {
		return snapshotRecipe{}, fault.Wrap(fault.ErrUnavailable, err, "sandbox %s can't be snapshotted: where its files are is not on record, so it was made by an older version, or has ended", i.id)
	}
	return snapshotRecipe{Version: recipeVersion, Sandbox: i.id, Root: p.Lower}, nil
}

func (r snapshotRecipe) writeRecipe(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recipeName), data, 0o600)
}

// readRecipe reads that of a verified image.
func readRecipe(dir string) (snapshotRecipe, error) {
	var r snapshotRecipe
	path := filepath.Join(dir, recipeName)
	if info, err := os.Lstat(path); err != nil || info.Size() > maxRecipe {
		return r, fault.New(fault.ErrConflict, "the image at %s is not a snapshot of this engine: it has no %s", dir, recipeName)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&r)
	}
	if err != nil {
		return r, fault.Wrap(fault.ErrConflict, err, "the snapshot at %s can't be read", dir)
	}
	if r.Version != recipeVersion {
		return r, fault.New(fault.ErrConflict, "the snapshot at %s is of version %d; this is for version %d", dir, r.Version, recipeVersion)
	}
	return r, nil
}

// Restore starts an instance with the files of a snapshot.
func (e *Engine) Restore(ctx context.Context, spec engine.Spec, dir string) (engine.Instance, error) {
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	if spec.Weak {
		return nil, fault.Invalid("a weak sandbox, for tests, is not restored")
	}
	if _, err := e.images.Verify(dir); err != nil {
		return nil, err
	}
	r, err := readRecipe(dir)
	if err != nil {
		return nil, err
	}
	if r.Root != spec.Root {
		return nil, fault.New(fault.ErrConflict, "the snapshot of sandbox %s does not fit sandbox %s: it is on the root %s, not on %s", r.Sandbox, spec.ID, r.Root.Path, spec.Root.Path)
	}
	return e.makeInstance(ctx, spec, filepath.Join(dir, upperName))
}
