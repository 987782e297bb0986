package gvisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
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

// restoresAtOnce bounds what keeps all processors busy: beyond it each restore
// is slower, and none sooner done. One is sure for whoever has a share of the processors.
func restoresAtOnce() fairqueue.Limits { return fairqueue.Limits{All: 3, Each: 2, Sure: 1, Most: 32} }

// tarHint is the annotation that fills the root's writable layer at the start.
const tarHint = "dev.gvisor.tar.rootfs.upper"

// Snapshot has the keeper hold the guest still while runsc writes memory or the
// root's writable layer to dir, and then go on.
func (i *Instance) Snapshot(ctx context.Context, dir string, contents engine.Contents) error {
	if err := i.engine.canSnapshot(); err != nil {
		return err
	}
	if contents != engine.ContentsMemory && contents != engine.ContentsFiles {
		return fault.Invalid("a snapshot holds %q or %q, not %q", engine.ContentsMemory, engine.ContentsFiles, contents)
	}
	if i.state.DiskBytes == 0 || i.state.Weak {
		return fault.New(fault.ErrUnavailable, "sandbox %s can't be snapshotted: it was made by an older version, or for a test", i.id)
	}
	made, err := i.recipe(contents)
	if err != nil {
		return err
	}
	f, err := i.snapshotting(dir, contents)
	if err != nil {
		return err
	}
	if err := image.Make(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	err = i.engine.home.Freeze(ctx, f)
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

// snapshotting is what the keeper is to run. A checkpoint stands still by
// itself, and one that fails goes on by itself; a tar does neither.
func (i *Instance) snapshotting(dir string, contents engine.Contents) (keeper.Freeze, error) {
	b := bundle{dir: i.engine.instanceDir(i.id)}
	runsc, err := i.engine.runscFlags(i.state, b)
	if err != nil {
		return keeper.Freeze{}, err
	}
	command := func(args ...string) []string { return append(append([]string{}, runsc...), append(args, i.id)...) }
	f := keeper.Freeze{ID: i.id, Keep: true, Dir: b.dir, Log: b.logFile(), Env: runscEnvironment()}
	if contents == engine.ContentsMemory {
		f.Steps = [][]string{command("checkpoint", "--leave-running", "--compression=none", "--image-path="+dir)}
		return f, nil
	}
	f.Steps = [][]string{
		command("pause"),
		command("tar", "rootfs-upper", "--file="+filepath.Join(dir, upperName)),
		command("resume"),
	}
	f.Undo = [][]string{command("resume")}
	return f, nil
}

// Restore starts an instance with the memory of a snapshot, or with its files.
func (e *Engine) Restore(ctx context.Context, spec engine.Spec, dir string) (engine.Instance, error) {
	if err := e.canSnapshot(); err != nil {
		return nil, err
	}
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	if spec.Weak {
		return nil, fault.Invalid("a weak sandbox, for tests, is not restored")
	}
	_, done, err := e.restores.Take(fairqueue.For(ctx, spec.Share))
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := e.images.Verify(dir); err != nil {
		return nil, err
	}
	r, err := readRecipe(dir)
	if err != nil {
		return nil, err
	}
	if err := e.checkSnapshot(r, spec); err != nil {
		return nil, err
	}
	if r.Contents == engine.ContentsFiles {
		return e.makeInstance(ctx, spec, processBeginning{command: []string{"run", "--detach"}, upper: filepath.Join(dir, upperName)})
	}
	return e.makeInstance(ctx, spec, processBeginning{
		// The instance is in another directory and has other ids of the host than
		// its source; what may differ was compared above.
		flags:   []string{"--restore-spec-validation=ignore"},
		command: []string{"restore", "--detach", "--image-path=" + dir}, copied: true,
	})
}

// canSnapshot says why not.
func (e *Engine) canSnapshot() error {
	if e.uid != 0 {
		return fault.New(fault.ErrUnavailable, "there are no snapshots here, because gVisor restores a sandbox only as root: run the daemon as root")
	}
	return nil
}
