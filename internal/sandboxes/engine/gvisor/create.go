package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Host tasks per sandbox: the sentry's and gofer's own threads, and for each
// guest process a stub with some threads. The kernel's refusal to give the
// sentry a thread kills the sandbox, so the group's limit is far above what
// RLIMIT_NPROC lets the guest have, and only stops what has gone wrong.
const (
	ownTasks    = 512
	tasksPerPid = 4
)

// handleState is what a Handle carries.
type handleState struct {
	Grouped bool `json:"grouped"` // there is a control group
	// The parts of runsc's flags, for a restore.
	DiskBytes int64 `json:"disk_bytes,omitempty"`
	Weak      bool  `json:"weak,omitempty"`
	Filled    bool  `json:"filled,omitempty"` // the root's writable layer was filled at the start
}

// processBeginning is how an instance's first process comes to be.
type processBeginning struct {
	flags   []string // of runsc
	command []string // its command, without the bundle and the id
	copied  bool     // the guest is a copy of another
	upper   string   // a tar of what the root's writable layer holds; "" for nothing
}

// Create makes the bundle and the control group, has the keeper start runsc in
// it, and hands the sentry and the gofer to the keeper.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	return e.makeInstance(ctx, spec, processBeginning{command: []string{"run", "--detach"}})
}

// makeInstance does what Create does, for every beginning. The spec is complete.
func (e *Engine) makeInstance(ctx context.Context, spec engine.Spec, begin processBeginning) (engine.Instance, error) {
	if _, err := e.runscThere(); err != nil {
		return nil, err
	}
	ids, err := e.identity(spec)
	if err != nil {
		return nil, err
	}
	b, err := e.makeDir(spec.ID)
	if err != nil {
		return nil, err
	}
	inst, err := e.startInstance(ctx, spec, ids, b, begin)
	if err != nil {
		// The caller may have given up; its remains go all the same.
		return nil, errors.Join(err, e.sweepTraces(context.WithoutCancel(ctx), spec.ID))
	}
	return inst, nil
}

func (e *Engine) identity(spec engine.Spec) (identity.Identity, error) {
	if spec.Weak && e.uid != 0 {
		return identity.Identity{}, fault.New(fault.ErrUnavailable, "a weak sandbox, for tests, takes root")
	}
	if spec.Weak {
		return identity.Identity{}, nil
	}
	return e.ids().Of(spec.ID, spec.Owner, spec.Mounts)
}

// makeDir makes the directory of a new instance, and runsc's own.
func (e *Engine) makeDir(id string) (bundle, error) {
	if err := os.MkdirAll(e.cfg.Root, 0o700); err != nil {
		return bundle{}, err
	}
	dir, err := e.home.Claim(id)
	return bundle{dir: dir}, err
}

// passable lets the gofer, which runs as a user of the sandbox's own, pass
// through to a directory root: it is given to pass (not to list) what this
// engine owns; what is above must allow it already.
func (e *Engine) passable(dir string) error {
	own := filepath.Join(e.cfg.StateDir, "sandboxes")
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&0o001 != 0:
		case dir == own || strings.HasPrefix(dir, own+"/"):
			if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
				return err
			}
		default:
			return fault.New(fault.ErrUnavailable, "a directory root needs a state directory that other users may pass through, which %s forbids; run `chmod o+x %s`, or use a template that is an image", dir, dir)
		}
	}
	return nil
}

func (e *Engine) startInstance(ctx context.Context, spec engine.Spec, ids identity.Identity, b bundle, begin processBeginning) (engine.Instance, error) {
	if spec.Root.Kind == engine.RootDir && e.uid == 0 {
		if err := e.passable(b.dir); err != nil {
			return nil, err
		}
	}
	if staged() { // what the stage lays mounts over must be there
		if err := mounts.Points(spec); err != nil {
			return nil, err
		}
		if err := mounts.CheckOwners(spec.Mounts, owners{spec.Owner, ids.UIDs, ids.GIDs}.translationOf); err != nil {
			return nil, err
		}
	}
	if err := b.writeBundle(spec, ids, begin.upper); err != nil {
		return nil, err
	}
	group, err := e.home.Group(spec, ownTasks+tasksPerPid*spec.Limits.Pids)
	if err != nil {
		return nil, err
	}
	st := handleState{Grouped: group != nil, DiskBytes: spec.Limits.DiskBytes, Weak: spec.Weak, Filled: begin.upper != ""}
	inst := e.instance(spec.ID, st)
	launch, err := inst.starting(b, begin)
	if err != nil {
		return nil, err
	}
	if group != nil {
		launch.CgroupProcs = group.Joins()
	}
	if err := e.home.Launch(ctx, launch); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	if err := e.trackProcesses(ctx, spec.ID); err != nil {
		return nil, err
	}
	return inst, b.emptied(begin.upper)
}

// starting is the runsc command of a start.
func (i *Instance) starting(b bundle, begin processBeginning) (keeper.Launch, error) {
	meta, err := json.Marshal(i.Handle())
	if err != nil {
		return keeper.Launch{}, err
	}
	runsc, err := i.engine.runscFlags(i.state, b)
	return keeper.Launch{
		ID: i.id, Dir: b.dir, Log: b.logFile(), Env: runscEnvironment(), Meta: meta, Reset: begin.copied,
		Argv: i.engine.staging(b, slices.Concat(runsc, begin.flags, begin.command, []string{"--bundle=" + b.dir, i.id})),
	}, err
}

// runscEnvironment is runsc's.
func runscEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// runscFlags are runsc and what all its commands for one sandbox have in common.
func (e *Engine) runscFlags(st handleState, b bundle) ([]string, error) {
	runsc, err := e.runscThere()
	if err != nil {
		return nil, err
	}
	network := "none"
	if st.Weak {
		network = "host"
	}
	flags := []string{
		runsc, "--root=" + e.cfg.Root, "--ignore-cgroups", "--network=" + network,
		"--host-uds=none", "--platform=systrap",
		// The default pins one that all share, which leaves a mount behind.
		"--gofer-network-namespace=new",
		"--overlay2=root:dir=" + b.dir + ",size=" + strconv.FormatInt(st.DiskBytes, 10),
	}
	if st.Filled || b.refilled() {
		flags = append(flags, "--allow-rootfs-tar-annotation")
	}
	return flags, nil
}

// recordPath is the path of runsc's files about a sandbox, without extension.
func (e *Engine) recordPath(id string) string {
	return filepath.Join(e.cfg.Root, id+"_sandbox:"+id)
}
