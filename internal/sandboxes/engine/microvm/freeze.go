package microvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

var (
	_ engine.Freezer     = (*Instance)(nil)
	_ engine.Snapshotter = (*Instance)(nil)
	_ engine.Restorer    = (*Engine)(nil)
)

// freezeTimeout bounds a freeze or thaw, which goes on though its caller has given up: half
// of one would be neither running nor frozen.
const freezeTimeout = 10 * time.Minute

// Freeze has the keeper hold the channel still, the monitor write the machine, and then kill
// the monitor. An instance that is frozen already gets its seal, if a daemon died before it
// had written it.
func (i *Instance) Freeze(ctx context.Context, dir string) error {
	return i.freeze(ctx, dir, engine.ContentsMemory)
}

// FreezeFiles keeps the root's disk alone.
func (i *Instance) FreezeFiles(ctx context.Context, dir string) error {
	return i.freeze(ctx, dir, engine.ContentsFiles)
}

func (i *Instance) freeze(ctx context.Context, dir string, contents engine.Contents) error {
	if err := i.copied(); err != nil {
		return err
	}
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	if !known.Frozen {
		f := i.writing(dir, contents)
		f.Fresh = contents == engine.ContentsFiles
		err = i.writeContents(ctx, f, contents)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	// A daemon that died may have begun with other contents.
	_, err = os.Lstat(filepath.Join(dir, machineName))
	if errors.Is(err, os.ErrNotExist) {
		contents, err = engine.ContentsFiles, nil
	}
	if err == nil {
		err = i.sealImage(ctx, dir, contents, func() error { return image.Seal(dir, i.id) })
	}
	if err != nil {
		return errors.Join(err, i.restore(ctx, dir, contents))
	}
	return nil
}

// copied refuses a weak machine: a copy of it would be one, too.
func (i *Instance) copied() error {
	var p stagePlan
	if err := loadJSON(i.engine.bundle(i.id).planFile(), &p); err != nil {
		return err
	}
	if p.Machine.Network {
		return fault.New(fault.ErrConflict, "sandbox %s has a network device, for a test, and is not copied", i.id)
	}
	return nil
}

// writeContents has the keeper do what f says. Files that the machine holds in memory are on its
// disk first: those of what runs on meanwhile may be there in part, as after a power cut.
func (i *Instance) writeContents(ctx context.Context, f keeper.Freeze, contents engine.Contents) error {
	if contents == engine.ContentsFiles {
		bounded, cancel := context.WithTimeout(ctx, hostproc.LongestWait)
		defer cancel()
		known, err := i.engine.keeper.Get(ctx, i.id)
		if err != nil {
			return err
		}
		if known.Exit == nil && !known.Moving {
			if _, err := i.engine.keeper.Call(bounded, i.id, channel.Call{Kind: channel.CallSync}); err != nil {
				return fault.Wrap(fault.ErrUnavailable, err, "sandbox %s does not bring its files to its disk", i.id)
			}
		}
	}
	return i.engine.home.Freeze(ctx, f)
}

// writing is what the keeper is to run to write the machine or its files.
func (i *Instance) writing(dir string, contents engine.Contents) keeper.Freeze {
	b := i.engine.bundle(i.id)
	stage := func(args ...string) []string { return slices.Concat(i.engine.cfg.Stage, []string{b.dir}, args) }
	do := doSave
	if contents == engine.ContentsFiles {
		do = doFiles
	}
	return keeper.Freeze{
		ID: i.id, Dir: b.dir, Log: b.logFile(), Env: programEnvironment(),
		Steps: [][]string{stage(do, dir)}, Undo: [][]string{stage(doContinue)},
	}
}

// sealImage completes an image with its recipe.
func (i *Instance) sealImage(ctx context.Context, dir string, contents engine.Contents, seal func() error) error {
	r, err := i.recipe(ctx, contents)
	if err != nil {
		return err
	}
	if err := saveJSON(filepath.Join(dir, recipeName), r); err != nil {
		return err
	}
	return seal()
}

// Thaw starts the machine again under the same keeper, with a new socketpair. An image that is
// not what Freeze wrote is refused before anything starts. Of an instance that runs it makes
// sure that the keeper knows its monitor.
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
	r, err := readRecipe(dir)
	if err != nil {
		return err
	}
	h, err := i.engine.available(ctx)
	if err != nil {
		return err
	}
	agent, err := i.engine.agentDigest()
	if err != nil {
		return err
	}
	if err := r.checkSpec(r.Spec, h, agent); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	return i.restore(ctx, dir, r.Contents)
}

// restore starts the monitor and hands it to the keeper.
func (i *Instance) restore(ctx context.Context, dir string, contents engine.Contents) error {
	e := i.engine
	known, err := e.keeper.Get(ctx, i.id)
	if err != nil {
		return err
	}
	if known.Frozen {
		// The files that a restore that failed left behind.
		if err := errors.Join(e.killStrays(ctx, i.id), i.prepareDisks(ctx, dir, contents)); err != nil {
			return err
		}
	}
	launch, err := i.launching()
	if err != nil {
		return err
	}
	launch.Fresh = contents == engine.ContentsFiles
	if err := e.keeper.Thaw(ctx, launch); err != nil {
		return err
	}
	err = e.trackMonitor(ctx, i.id)
	if err == nil && launch.Fresh {
		err = e.awaitAgent(ctx, i.id)
	}
	if err != nil { // the machine has run, so that the image is no longer its state
		return errors.Join(
			fmt.Errorf("sandbox %s ended at its thaw: %w", i.id, err),
			e.keeper.Kill(ctx, i.id), e.killStrays(ctx, i.id),
		)
	}
	return nil
}

// prepareDisks lays out the instance's disks as the image has them, and what the stage is to do.
func (i *Instance) prepareDisks(ctx context.Context, dir string, contents engine.Contents) error {
	b := i.engine.bundle(i.id)
	var p stagePlan
	if err := loadJSON(b.planFile(), &p); err != nil {
		return err
	}
	if contents == engine.ContentsFiles { // it boots on what is there now
		h, err := i.engine.available(ctx)
		if err != nil {
			return err
		}
		p.Kind, p.Program, p.Kernel = h.kind, h.program, h.image
		p.Machine.Hardware, p.Machine.KHz, p.Machine.Shared = h.hardware(), i.engine.counterRate(h), i.engine.shared(h)
	}
	if err := os.Remove(b.socket()); err != nil && !errors.Is(err, os.ErrNotExist) { // of the monitor before
		return err
	}
	p.Arrive, p.Machine.Arriving = "", contents == engine.ContentsMemory
	if p.Machine.Arriving {
		p.Arrive = dir
	}
	for n, size := range p.Disks {
		if err := os.Remove(b.diskFile(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		packed := filepath.Join(dir, packedDiskName(n))
		_, err := os.Lstat(packed)
		if err == nil {
			err = unpack(packed, b.diskFile(n))
		} else if errors.Is(err, os.ErrNotExist) {
			err = makeDisk(ctx, b.diskFile(n), size)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(saveJSON(b.planFile(), p), b.giveToUser(p.UID))
}

// Snapshot has the keeper hold the channel still while the monitor writes the machine, or its
// files, and then has it go on.
func (i *Instance) Snapshot(ctx context.Context, dir string, contents engine.Contents) error {
	if contents != engine.ContentsMemory && contents != engine.ContentsFiles {
		return fault.Invalid("a snapshot holds %q or %q, not %q", engine.ContentsMemory, engine.ContentsFiles, contents)
	}
	if err := errors.Join(i.copied(), image.Make(dir)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	f := i.writing(dir, contents)
	f.Keep = true
	f.Steps = append(f.Steps, f.Undo[0])
	err := i.writeContents(ctx, f, contents)
	if err == nil {
		err = i.sealImage(ctx, dir, contents, func() error { return i.engine.images.Seal(dir, i.id) })
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// Restore starts an instance with the memory of a snapshot, or with its files.
func (e *Engine) Restore(ctx context.Context, spec engine.Spec, dir string) (engine.Instance, error) {
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	if _, err := e.images.Verify(dir); err != nil {
		return nil, err
	}
	r, err := readRecipe(dir)
	if err != nil {
		return nil, err
	}
	h, err := e.available(ctx)
	if err != nil {
		return nil, err
	}
	agent, err := e.agentDigest()
	if err != nil {
		return nil, err
	}
	if err := r.checkSpec(spec, h, agent); err != nil {
		return nil, err
	}
	return e.makeInstance(ctx, spec, machineBeginning{image: dir, made: &r})
}

// unpack makes the disks that come with a copy.
func (from machineBeginning) unpack(b bundle) error {
	for packed, name := range from.made.packedDisks() {
		if err := unpack(filepath.Join(from.image, packed), filepath.Join(b.ownDir(), name)); err != nil {
			return err
		}
	}
	return nil
}
