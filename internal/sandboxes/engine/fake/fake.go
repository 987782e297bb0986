// Package fake runs PID 1 as a plain process of the host, for tests of what is above engines. It is
// a real engine in every respect but one: nothing is isolated or limited, and it declares so, which
// keeps it from being chosen for a sandbox. It freezes by stopping the process, which keeps its
// memory; the image stands for that process and holds nothing else. Without memory it keeps, also
// as snapshots, the files of one directory, see Engine.Own.
//
// Roots and mounts are not shown: Spec.Init is a path on the host.
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Name of the engine.
const Name = "fake"

// sandboxKeeper is what this engine needs of the keeper.
type sandboxKeeper interface {
	Launch(ctx context.Context, l keeper.Launch) (keeper.Sandbox, error)
	Get(ctx context.Context, id string) (keeper.Sandbox, error)
	Signal(ctx context.Context, id string, sig int) error
	Kill(ctx context.Context, id string) error
	Freeze(ctx context.Context, f keeper.Freeze) error
	Thaw(ctx context.Context, l keeper.Launch) error
	Track(ctx context.Context, id string, processes []process.ID) error
	Wait(ctx context.Context, id string) (keeper.ProcessExit, error)
	Forget(ctx context.Context, id string) error
}

// Engine starts processes. Safe for concurrent use.
type Engine struct {
	stateDir string
	keeper   sandboxKeeper
}

var _ engine.Engine = (*Engine)(nil)

// New makes the engine; instances' files are in stateDir/sandboxes/<id>/fake.
func New(stateDir string, k sandboxKeeper) *Engine {
	return &Engine{stateDir: stateDir, keeper: k}
}

// Name is "fake".
func (*Engine) Name() string { return Name }

// Capabilities declares that it can freeze, and nothing else: a snapshot without
// memory is half of one.
func (*Engine) Capabilities(context.Context) (engine.Capabilities, error) {
	missing := map[engine.Control]string{}
	for _, c := range []engine.Control{
		engine.ControlNoNetwork, engine.ControlReadOnlyRoot, engine.ControlDiskCap, engine.ControlMemory,
		engine.ControlCPU, engine.ControlPids, engine.ControlNProc, engine.ControlOwnKernel,
		engine.ControlUserMapping, engine.ControlNonRootUser,
	} {
		missing[c] = "the fake engine isolates nothing"
	}
	missing[engine.ControlSnapshot] = noMemory
	return engine.Capabilities{Enforces: []engine.Control{engine.ControlFreeze, engine.ControlSnapshotFiles}, Missing: missing}, nil
}

// Create starts PID 1 as the keeper's child.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	return e.createInstance(ctx, spec, func(string) error { return nil })
}

// createInstance does what Create does, with what fill puts into the directory of the instance's own
// files.
func (e *Engine) createInstance(ctx context.Context, spec engine.Spec, fill func(own string) error) (engine.Instance, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	dir := e.instanceDir(spec.ID)
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // Its commands, which are another user's, pass through.
		return nil, err
	}
	if err := os.Mkdir(dir, 0o711); errors.Is(err, os.ErrExist) { //nolint:gosec // As above.
		return nil, fault.Wrap(fault.ErrConflict, err, "a sandbox %s exists already", spec.ID)
	} else if err != nil {
		return nil, err
	}
	inst := e.instance(spec.ID)
	meta, err := json.Marshal(inst.Handle())
	if err == nil {
		err = errors.Join(e.keepBegin(spec), e.makeOwn(spec.ID))
	}
	if err == nil {
		err = fill(e.Own(spec.ID))
	}
	if err != nil {
		return nil, errors.Join(err, e.Sweep(context.WithoutCancel(ctx), spec.ID))
	}
	_, err = e.keeper.Launch(ctx, keeper.Launch{
		ID: spec.ID, Argv: spec.Init, Env: spec.Env, Dir: dir, Log: filepath.Join(dir, "init.log"),
		Attached: true, Meta: meta,
	})
	if err != nil {
		return nil, errors.Join(err, e.Sweep(context.WithoutCancel(ctx), spec.ID))
	}
	return inst, nil
}

// makeOwn makes the directory of an instance's own files, in which all its users
// may write.
func (e *Engine) makeOwn(id string) error {
	if err := os.Mkdir(e.Own(id), 0o700); err != nil {
		return err
	}
	return os.Chmod(e.Own(id), os.ModeSticky|0o777)
}

func checkSpec(spec engine.Spec) error {
	for _, r := range spec.ID {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return fault.Invalid("the sandbox id %q must be 1 to 64 of a-z, 0-9 and -", spec.ID)
		}
	}
	if spec.ID == "" || len(spec.ID) > 64 {
		return fault.Invalid("the sandbox id %q must be 1 to 64 of a-z, 0-9 and -", spec.ID)
	}
	if _, err := os.Stat(spec.Root.Path); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the root %s can't be read", spec.Root.Path)
	}
	for _, m := range spec.Mounts {
		if m.Source == "" {
			continue
		}
		source, err := m.Open()
		if err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "the mount source %s can't be read", m.Source)
		}
		source.Close()
	}
	if len(spec.Init) == 0 {
		return fault.Invalid("sandbox %s has no PID 1", spec.ID)
	}
	return nil
}

// Open finds an instance that the keeper still knows.
func (e *Engine) Open(ctx context.Context, h engine.Handle) (engine.Instance, error) {
	if h.Engine != Name {
		return nil, fault.Invalid("the handle of %s is of the engine %q, not %q", h.ID, h.Engine, Name)
	}
	if _, err := os.Stat(e.instanceDir(h.ID)); err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "sandbox %s has no files any more", h.ID)
	}
	if _, err := e.keeper.Get(ctx, h.ID); err != nil {
		return nil, err
	}
	return e.instance(h.ID), nil
}

// List returns the ids of all instances that have files.
func (e *Engine) List(context.Context) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(e.stateDir, "sandboxes", "*", Name))
	ids := make([]string, 0, len(found))
	for _, dir := range found {
		ids = append(ids, filepath.Base(filepath.Dir(dir)))
	}
	return ids, err
}

// Sweep kills and forgets.
func (e *Engine) Sweep(ctx context.Context, id string) error {
	if err := e.keeper.Kill(ctx, id); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	if err := os.RemoveAll(e.instanceDir(id)); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(e.instanceDir(id))) // Others may keep files beside ours.
	if err := e.keeper.Forget(ctx, id); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	return nil
}

func (e *Engine) instanceDir(id string) string {
	return filepath.Join(e.stateDir, "sandboxes", id, Name)
}

func (e *Engine) instance(id string) *Instance { return &Instance{engine: e, id: id} }

// Instance is one process.
type Instance struct {
	engine    *Engine
	id        string
	destroyed atomic.Bool // set before the kill, so that Wait knows whose it was
}

var _ engine.Instance = (*Instance)(nil)

// Handle is what Open takes.
func (i *Instance) Handle() engine.Handle {
	return engine.Handle{Engine: Name, ID: i.id, State: json.RawMessage("{}")}
}

// Signal reaches the process.
func (i *Instance) Signal(ctx context.Context, signal int) error {
	return i.engine.keeper.Signal(ctx, i.id, signal)
}

// Wait returns when the process has ended.
func (i *Instance) Wait(ctx context.Context) (engine.Exit, error) {
	exit, err := i.engine.keeper.Wait(ctx, i.id)
	if errors.Is(err, fault.ErrNotFound) && i.destroyed.Load() {
		return engine.Exit{Code: 128 + int(unix.SIGKILL), Reason: "destroyed"}, nil
	}
	if err != nil {
		return engine.Exit{}, err
	}
	out := engine.Exit{Code: exit.Code, Reason: "agent exited"}
	if exit.Signal != 0 {
		out = engine.Exit{Code: 128 + exit.Signal, Reason: "killed"}
	}
	if i.destroyed.Load() {
		out.Reason = "destroyed"
	}
	return out, nil
}

// Stats are not counted.
func (*Instance) Stats(context.Context) (engine.Stats, error) {
	return engine.Stats{}, fault.New(fault.ErrUnavailable, "the fake engine counts nothing")
}

// Destroy kills and removes.
func (i *Instance) Destroy(ctx context.Context) error {
	i.destroyed.Store(true)
	return i.engine.Sweep(ctx, i.id)
}
