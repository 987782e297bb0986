package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/moby/moby/client"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/engine/kept"
	"github.com/cofferdam-dev/cofferdam/internal/engine/layer"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// Files of a snapshot.
const (
	recipeName = "recipe.json"
	upperName  = "upper" // what was written to the root, with what was deleted
)

// snapshotTimeout bounds a snapshot: a full disk takes a while.
const snapshotTimeout = 10 * time.Minute

const recipeVersion = 2

// recipe says what a snapshot needs to be restored.
type recipe struct {
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
	made := recipe{Version: recipeVersion}
	if err := readJSON(i.file(specName), &made.Spec); err != nil {
		return fault.Wrap(fault.ErrConflict, err, "sandbox %s can't be snapshotted: it has ended", i.id)
	}
	if err := image.Make(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotTimeout)
	defer cancel()
	err := i.pack(ctx, filepath.Join(dir, upperName))
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

// pack has the keeper hold the channel while a stage archives the layer, so that nobody
// takes the pause for an end.
func (i *Instance) pack(ctx context.Context, to string) error {
	step := func(name, what string) ([]string, error) {
		dir := i.file(name)
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
		ID: i.id, Keep: true, Dir: i.engine.home.Path(i.id), Log: i.file(logName), Env: environment(),
		Steps: [][]string{packing, goingOn}, Undo: [][]string{goingOn},
	})
}

// packed is the stage that holds a container and archives its layer.
func packed(ctx context.Context, t task) error {
	s, err := dial(ctx, t.Host)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	if _, err := s.ContainerPause(ctx, t.Container, client.ContainerPauseOptions{}); err != nil {
		return err
	}
	return s.within(ctx, func() error { return layer.Pack(ground{place: t.Place}.files(0), t.To, layer.Owners{}) })
}

// goOn is the stage that has a container go on.
func goOn(ctx context.Context, t task) error {
	s, err := dial(ctx, t.Host)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	return unpause(ctx, s, t.Container)
}

// unpause has a container go on; nothing is wrong if it does already, or has ended.
func unpause(ctx context.Context, s service, container string) error {
	_, err := s.ContainerUnpause(ctx, container, client.ContainerUnpauseOptions{})
	if err == nil || gone(err) {
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
	spec, err := kept.Complete(spec)
	if err != nil {
		return nil, err
	}
	if spec.Weak {
		return nil, fault.Invalid("a weak sandbox, for tests, is not restored")
	}
	if _, err := e.images.Verify(dir); err != nil {
		return nil, err
	}
	var r recipe
	if err := readJSON(filepath.Join(dir, recipeName), &r); err != nil {
		return nil, fault.Wrap(fault.ErrConflict, err, "the image at %s is not a snapshot of this engine", dir)
	}
	if r.Version != recipeVersion {
		return nil, fault.New(fault.ErrConflict, "the snapshot at %s is of version %d; this is for version %d", dir, r.Version, recipeVersion)
	}
	if r.Spec.Root != spec.Root {
		return nil, fault.New(fault.ErrConflict, "the snapshot of sandbox %s does not fit sandbox %s: it is on the root %s, not on %s", r.Spec.ID, spec.ID, r.Spec.Root.Path, spec.Root.Path)
	}
	return e.make(ctx, spec, filepath.Join(dir, upperName))
}
