package microvm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/boot"
)

// The parts that a machine has beside what its sandbox was given.
const (
	ownMemory  = 320 << 20 // of the host, for the monitor itself
	leanMemory = 144 << 20 // the same, of a machine that has more memory than it may use
	ownTasks   = 128       // of the host: the monitor's threads, of which 64 may write to disks
	guestTasks = 64        // of the machine: the agent's
	leastMiB   = 96
	mostCPUs   = 16
)

// noFile is the agent's limit of open files; each of its streams takes some.
const noFile = 65536

// machineBeginning is how an instance's machine comes to be.
type machineBeginning struct {
	image string       // an image that it is a copy of; "" for none
	made  *imageRecipe // of that image
}

// Create makes the disks and the control group, has the keeper start the stage, and waits
// until the agent answers.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	return e.makeInstance(ctx, spec, machineBeginning{})
}

// makeInstance does what Create does, for every beginning. The spec is complete.
func (e *Engine) makeInstance(ctx context.Context, spec engine.Spec, begin machineBeginning) (engine.Instance, error) {
	h, err := e.available(ctx)
	if err != nil {
		return nil, err
	}
	l, err := e.checkSpec(ctx, spec, h)
	if err != nil {
		return nil, err
	}
	if _, err := e.home.Claim(spec.ID); err != nil {
		return nil, err
	}
	inst, err := e.beginMachine(ctx, spec, h, l, begin)
	if err != nil {
		// The caller may have given up; its remains go all the same.
		return nil, errors.Join(err, e.sweepTraces(context.WithoutCancel(ctx), spec.ID))
	}
	return inst, nil
}

// checkSpec refuses what a machine can't have.
func (e *Engine) checkSpec(ctx context.Context, spec engine.Spec, h *host) (layout, error) {
	switch {
	case spec.Root.Kind != engine.RootImage:
		return layout{}, fault.New(fault.ErrUnavailable, "the engine microvm needs a template that is an image, which %s is not; build one (`cofferdam template build debian`), or use the engine gvisor", spec.Root.Path)
	case spec.Limits.MemoryBytes < leastMiB<<20:
		return layout{}, fault.Invalid("a machine needs at least %d MB of memory", leastMiB)
	}
	for _, path := range []string{spec.Root.Path, h.image} {
		info, err := os.Stat(path)
		if err != nil {
			return layout{}, fault.Wrap(fault.ErrUnavailable, err, "%s can't be read", path)
		}
		if info.Mode()&0o004 == 0 {
			return layout{}, fault.New(fault.ErrUnavailable, "%s can't be read by the user that a machine runs as: `chmod o+r` it, or a copy", path)
		}
	}
	return layOut(ctx, spec)
}

func (e *Engine) beginMachine(ctx context.Context, spec engine.Spec, h *host, l layout, begin machineBeginning) (engine.Instance, error) {
	b := e.bundle(spec.ID)
	if err := errors.Join(os.Mkdir(b.rootPlace(), 0o755), os.Mkdir(b.ownDir(), 0o711), saveJSON(b.recipe(), spec)); err != nil { //nolint:gosec // users pass through
		return nil, err
	}
	if err := os.WriteFile(b.logFile(), nil, 0o600); err != nil {
		return nil, err
	}
	ids, err := e.ids().Of(spec.ID, engine.Owner{}, nil)
	if err != nil {
		return nil, err
	}
	p := e.planStage(spec, h, l, identity.HostID(ids.UIDs, 0), begin)
	if err := e.fillBundle(ctx, b, spec, h, l, p, begin); err != nil {
		return nil, err
	}
	limited := spec
	limited.Limits.MemoryBytes = p.hostMemory(spec.Limits.MemoryBytes)
	group, err := e.home.Group(limited, ownTasks+2*p.Machine.CPUs)
	if err != nil {
		return nil, err
	}
	inst := e.instance(spec.ID, handleState{Grouped: group != nil})
	launch, err := inst.launching()
	if err != nil {
		return nil, err
	}
	launch.Reset = p.Arrive != ""
	if err := e.home.Launch(ctx, launch); err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	if err := e.trackMonitor(ctx, spec.ID); err != nil {
		return nil, err
	}
	return inst, e.awaitAgent(ctx, spec.ID)
}

// planStage plans what the stage is to do.
func (e *Engine) planStage(spec engine.Spec, h *host, l layout, uid int, begin machineBeginning) stagePlan {
	p := stagePlan{
		Kind: h.kind, Program: h.program, Carrier: e.cfg.Stage[1:], Device: e.device, UID: uid, Kernel: h.image, Root: spec.Root.Path, Disks: l.disks, Images: len(l.images), Env: programEnvironment(),
		Machine: machine{
			Name: e.home.Path(spec.ID), Kernel: inPlace(kernelName), Initrd: inPlace(ownName, initrdName), Socket: inPlace(ownName, socketName),
			MiB: spec.Limits.MemoryBytes >> 20, CPUs: processors(spec.Limits.CPU), Hardware: h.hardware(), Disks: l.devices(),
			KHz: e.counterRate(h), Shared: e.shared(h), Network: spec.Weak,
		},
	}
	if begin.made != nil && begin.made.Contents == engine.ContentsMemory {
		p.Arrive = begin.image
		p.Machine = begin.made.Machine
		p.Machine.Name, p.Machine.Arriving = e.home.Path(spec.ID), true
	}
	p.Most = max(slices.Max(p.Disks), p.Machine.MiB<<20) + 64<<20
	return p
}

// hostMemory is how much of the host's memory a machine may take that is given some. A copy may
// be given less than the machine has of which it is: its own kernel does not keep to that, so
// that the host's does.
func (p stagePlan) hostMemory(given int64) int64 {
	if p.Machine.MiB<<20 > given {
		return given + leanMemory
	}
	return given + ownMemory
}

// shared tells whether a machine's memory is a file that the stage copies.
func (e *Engine) shared(h *host) bool { return h.kind == kindQEMU && !e.stream }

// counterRate is what an emulated kernel is told of the counter, and 0 for others.
func (e *Engine) counterRate(h *host) int {
	if h.hardware() {
		return 0
	}
	return e.khz()
}

// processors is how many a machine has for a share of the host's.
func processors(share float64) int {
	return max(1, min(int(math.Ceil(share)), runtime.NumCPU(), mostCPUs))
}

// fillBundle makes the files of a machine.
func (e *Engine) fillBundle(ctx context.Context, b bundle, spec engine.Spec, h *host, l layout, p stagePlan, begin machineBeginning) error {
	agent, err := e.cfg.Agent()
	if err != nil {
		return err
	}
	modules := h.modules
	if p.Machine.Network {
		if modules, err = h.kernel.loadModules(append(h.monitor().modules(), "virtio_net")); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(modules))
	for _, m := range modules {
		names = append(names, m.name+".ko")
	}
	first := boot.Machine{
		Modules: names, Root: rootSerial, Scratch: diskName(0), Mounts: l.mounts, Init: spec.Init, Env: spec.Env, Hostname: spec.Hostname,
		Vsock: h.monitor().vsockPort(), Network: p.Machine.Network,
		Tasks: guestTasks + 2*spec.Limits.Pids, NProc: uint64(spec.Limits.Pids), Files: noFile,
	}
	if h.monitor().unnamed() {
		for _, d := range p.Machine.Disks {
			first.Devices = append(first.Devices, d.Serial)
		}
	}
	if err := b.firstRoot(first, agent, modules, l.files); err != nil {
		return err
	}
	if begin.image != "" {
		if err := begin.unpack(b); err != nil {
			return err
		}
	}
	return errors.Join(saveJSON(b.planFile(), p), l.makeDisks(ctx, b, spec.Owner), b.giveToUser(p.UID))
}
