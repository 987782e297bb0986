package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// staged tells whether starts go through a stage, which takes root. A daemon without rights
// has none: its sandboxes see by name what its user may see, once it was looked at.
func staged() bool { return os.Geteuid() == 0 }

// staging puts the stage in front of a runsc command that mounts paths of the host.
func (e *Engine) staging(b bundle, command []string) []string {
	if !staged() {
		return command
	}
	return slices.Concat(e.cfg.Stage, []string{b.dir}, command)
}

// keepPlan writes down what the instance shows of the host, and what that was when it was
// checked, for each of its starts.
func (b bundle) keepPlan(shown []engine.Mount) error {
	data, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	return os.WriteFile(b.planFile(), data, 0o600)
}

func (b bundle) planned() (shown []engine.Mount, err error) {
	data, err := os.ReadFile(b.planFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.New(fault.ErrConflict, "the sandbox was made by an older version, which did not keep what its mounts showed, so that it can't be started again; destroy it and make another")
	}
	if err != nil {
		return nil, err
	}
	return shown, json.Unmarshal(data, &shown)
}

// owners are whose files mounts show, and as whom the sandbox's users act on the host.
type owners struct {
	Owner engine.Owner           `json:"owner"`
	UIDs  []specs.LinuxIDMapping `json:"uids"`
	GIDs  []specs.LinuxIDMapping `json:"gids"`
}

func (o owners) translationOf(root unix.Stat_t) mounts.Translation {
	return mounts.Swapped(o.Owner, o.UIDs, o.GIDs, root)
}

// keepOwners writes them down for each start of the instance.
func (b bundle) keepOwners(o owners) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(b.owners(), data, 0o600)
}

// ownersKept are none for an instance that an older version made, whose mounts translate none.
func (b bundle) ownersKept() (o owners, err error) {
	data, err := os.ReadFile(b.owners())
	if errors.Is(err, os.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

// Stage lays what the instance in a folder shows of the host at places in that folder, in a
// mount namespace of its own, and becomes the command, which starts runsc there. So runsc,
// which mounts by name, does so by names that lead nowhere but to what was opened. It
// returns on errors only. Standard input and output are the sandbox's.
func Stage(dir string, command []string) error {
	b := bundle{dir: dir}
	if len(command) == 0 {
		return fault.Invalid("the stage of %s has no command", dir)
	}
	shown, err := b.planned()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // never unlocked: the namespace is this thread's, until it becomes runsc
	if err := mounts.Alone(); err != nil {
		return err
	}
	owners, err := b.ownersKept()
	if err != nil {
		return err
	}
	if err := (mounts.Pins{Mounts: shown, At: b.pinPlace, Empty: b.emptyDir(), Owners: owners.translationOf}).Pin(); err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", command[0], unix.Exec(command[0], command, runscEnvironment()))
}
