package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/moby/moby/client"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/layer"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Files of a snapshot.
const (
	recipeName = "recipe.json"
	upperName  = "upper" // what was written to the root, with what was deleted
)

// snapshotTimeout bounds a snapshot: a full disk takes a while.
const snapshotTimeout = 10 * time.Minute

const recipeVersion = 2

// snapshotRecipe says what a snapshot needs to be restored.
type snapshotRecipe struct {
	Version int         `json:"version"`
	Spec    engine.Spec `json:"spec"` // of the source, complete
}

// Snapshot archives the writable layer while the service holds the container still. It is
// no commit of the service's: what a sandbox writes is not in its container's own layer.
func (i *Instance) Snapshot(ctx context.Context, dir string, contents engine.Contents) error {
	switch contents {
	case engine.ContentsFiles:
	case engine.ContentsMemory:
		return fault.New(fault.ErrUnavailable, "the engine docker can't copy memory: %s", noSnapshot)
	default:
		return fault.Invalid("a snapshot holds %q or %q, not %q", engine.ContentsMemory, engine.ContentsFiles, contents)
	}
	made := snapshotRecipe{Version: recipeVersion}
	if err := readJSON(i.ownFile(specName), &made.Spec); err != nil {
		return fault.Wrap(fault.ErrConflict, err, "sandbox %s can't be snapshotted: it has ended", i.id)
	}
	if err := image.Make(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
	defer cancel()
	err := i.packLayer(ctx, filepath.Join(dir, upperName))
	if err == nil {
		err = writeJSON(filepath.Join(dir, recipeName), made)
	}
	if err == nil {
		err = i.engine.images.Seal(dir, i.id)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// packLayer has the keeper hold the channel while a stage archives the layer, so that nobody
// takes the pause for an end.
func (i *Instance) packLayer(ctx context.Context, to string) error {
	step := func(name, what string) ([]string, error) {
		dir := i.ownFile(name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return slices.Concat(i.engine.cfg.Stage, []string{dir}), writeJSON(filepath.Join(dir, taskName), task{
			Task: what, Host: i.engine.cfg.Host, Container: i.state.Container, Place: i.engine.ground(i.id).place, To: to,
		})
	}
	packing, err := step("pack", taskPack)
	if err != nil {
		return err
	}
	goingOn, err := step("go-on", taskGoOn)
	if err != nil {
		return err
	}
	return i.engine.home.Freeze(ctx, keeper.Freeze{
		ID: i.id, Keep: true, Dir: i.engine.home.Path(i.id), Log: i.ownFile(logName), Env: stageEnvironment(),
		Steps: [][]string{packing, goingOn}, Undo: [][]string{goingOn},
	})
}

// packed is the stage that holds a container and archives its layer.
func packed(ctx context.Context, t task) error {
	s, err := dialHost(ctx, t.Host)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	if _, err := s.ContainerPause(ctx, t.Container, client.ContainerPauseOptions{}); err != nil {
		return err
	}
	return s.withinMounts(ctx, func() error { return layer.Pack(ground{place: t.Place}.filesDir(0), t.To, layer.Owners{}) })
}

// letGoOn lets a container go on, as a stage.
func letGoOn(ctx context.Context, t task) error {
	s, err := dialHost(ctx, t.Host)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	return unpause(ctx, s, t.Container)
}

// unpause has a container go on; nothing is wrong if it does already, or has ended.
func unpause(ctx context.Context, s service, container string) error {
	_, err := s.ContainerUnpause(ctx, container, client.ContainerUnpauseOptions{})
	if err == nil || isGone(err) {
		return nil
	}
	// Of one that is not held the service says so in words only.
	if now, asked := s.ContainerInspect(ctx, container, client.ContainerInspectOptions{}); asked == nil && !now.Container.State.Paused {
		return nil
	}
	return err
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
	var r snapshotRecipe
	if err := readJSON(filepath.Join(dir, recipeName), &r); err != nil {
		return nil, fault.Wrap(fault.ErrConflict, err, "the image at %s is not a snapshot of this engine", dir)
	}
	if r.Version != recipeVersion {
		return nil, fault.New(fault.ErrConflict, "the snapshot at %s is of version %d; this is for version %d", dir, r.Version, recipeVersion)
	}
	if r.Spec.Root != spec.Root {
		return nil, fault.New(fault.ErrConflict, "the snapshot of sandbox %s does not fit sandbox %s: it is on the root %s, not on %s", r.Spec.ID, spec.ID, r.Spec.Root.Path, spec.Root.Path)
	}
	return e.makeInstance(ctx, spec, filepath.Join(dir, upperName))
}
