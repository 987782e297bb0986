package gvisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// FreezeFiles has the keeper hold the guest still, write the root's writable layer to
// dir, and then kill the processes.
func (i *Instance) FreezeFiles(ctx context.Context, dir string) error {
	b := bundle{dir: i.engine.instanceDir(i.id)}
	runsc, err := i.engine.runscFlags(i.state, b)
	if err != nil {
		return err
	}
	command := func(args ...string) []string { return append(append([]string{}, runsc...), append(args, i.id)...) }
	return i.freeze(ctx, dir, keeper.Freeze{
		ID: i.id, Dir: b.dir, Log: b.logFile(), Env: runscEnvironment(), Fresh: true,
		Steps: [][]string{command("pause"), command("tar", "rootfs-upper", "--file="+filepath.Join(dir, upperName))},
		Undo:  [][]string{command("resume")},
	})
}

// filesOnly tells whether an image is FreezeFiles'.
func filesOnly(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, upperName))
	return err == nil
}

// filled tells whether the root's writable layer was filled at a start.
func (i *Instance) filled(b bundle) bool { return i.state.Filled || b.refilled() }

// prepareLaunch prepares the runsc command that starts the instance on the files in dir. It has
// another boot's id from then on.
func (i *Instance) prepareLaunch(dir string) (keeper.Launch, error) {
	b := bundle{dir: i.engine.instanceDir(i.id)}
	if err := errors.Join(b.beBorn(), b.fillUpper(filepath.Join(dir, upperName))); err != nil {
		return keeper.Launch{}, err
	}
	runsc, err := i.engine.runscFlags(i.state, b)
	if err != nil {
		return keeper.Launch{}, err
	}
	launch := keeper.Launch{
		ID: i.id, Dir: b.dir, Log: b.logFile(), Env: runscEnvironment(), Fresh: true,
		Argv: i.engine.staging(b, append(runsc, "run", "--detach", "--bundle="+b.dir, i.id)),
	}
	return launch, i.joinGroup(&launch)
}
