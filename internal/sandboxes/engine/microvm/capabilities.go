package microvm

import (
	"context"
	"os"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Why the engine has not what another has.
const (
	noMounts    = "a machine has no share in the host's files: what is to be read is copied when it starts, and nothing can be mounted for writing"
	noNProc     = "a user's processes are bounded, but one who has started as many as may be gets no further command in until some end"
	notHardware = "machines are emulated, which is another program's work and not the processor's: an emulator was not made to keep anybody in, starts take seconds, and programs run ten to thirty times more slowly"
)

// hardware is told at the start of each run where it is missing, as controls are.
const hardware engine.Control = "hardware"

// Capabilities probes the host: the monitor, a kernel with its modules and the tools must be
// there, else the engine can't run at all; control groups may be missing.
func (e *Engine) Capabilities(ctx context.Context) (engine.Capabilities, error) {
	h, err := e.available(ctx)
	if err != nil {
		return engine.Capabilities{}, err
	}
	caps := engine.Capabilities{
		Enforces: []engine.Control{
			engine.ControlNoNetwork, engine.ControlReadOnlyRoot, engine.ControlDiskCap,
			engine.ControlOwnKernel, engine.ControlNonRootUser, engine.ControlFreeze, engine.ControlSnapshot, engine.ControlSnapshotFiles,
		},
		Missing: map[engine.Control]string{engine.ControlUserMapping: noMounts, engine.ControlNProc: noNProc},
	}
	if h.hardware() {
		caps.Wall = engine.WallHardware
	} else {
		caps.Wall, caps.NoHardware = engine.WallEmulated, h.kvm.whyAndRemedy()
		caps.Missing[hardware] = notHardware
	}
	caps.By = h.version
	if h.passed != "" {
		caps.By += " (" + h.passed + ")"
	}
	e.home.Controls(&caps)
	if all, err := e.home.List(ctx); err == nil && len(all) == 0 {
		e.home.Groups().Tidy() // asking leaves nothing on a host that never has such a sandbox
	}
	return caps, nil
}

// hardware tells whether machines are the processor's.
func (h *host) hardware() bool { return h.kvm == kvmFast }

// firstOf is the first of some files that there is; "" for none.
func firstOf(paths ...string) string {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// mkfsDisk finds the program that makes disks; mkfsImage the one that makes images.
func mkfsDisk() string {
	return firstOf("/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4")
}

func mkfsImage() string {
	return firstOf("/usr/bin/mkfs.erofs", "/usr/sbin/mkfs.erofs", "/sbin/mkfs.erofs")
}

// available probes the host until it has what machines need; a monitor that is put in the
// place of another is probed anew.
func (e *Engine) available(ctx context.Context) (*host, error) {
	if e.uid != 0 {
		return nil, fault.New(fault.ErrUnavailable, "the engine microvm needs a daemon that is root, to shut its monitors in; gvisor runs without")
	}
	for tool, program := range map[string]string{"mkfs.ext4 (package e2fsprogs)": mkfsDisk(), "mkfs.erofs (package erofs-utils)": mkfsImage()} {
		if program == "" {
			return nil, fault.New(fault.ErrUnavailable, "the engine microvm needs %s: install it", tool)
		}
	}
	e.probing.Lock()
	defer e.probing.Unlock()
	if h := e.probed; h != nil && h.seesPrograms(e.programs()) {
		return h, nil
	}
	h, err := e.probeHost(ctx)
	if err == nil {
		e.probed = h
	}
	return h, err
}

// probeHost looks at the host anew.
func (e *Engine) probeHost(ctx context.Context) (*host, error) {
	h := &host{programs: e.programs()}
	for _, program := range h.programs {
		info, err := os.Stat(program)
		if err != nil {
			return nil, err
		}
		h.found = append(h.found, info)
	}
	var err error
	if h.kernel, err = findKernel(e.cfg.Kernel); err != nil {
		return nil, err
	}
	if h.choice, h.version, err = e.choose(ctx, h.kernel); err != nil {
		return nil, err
	}
	if h.modules, err = h.kernel.loadModules(h.monitor().modules()); err != nil {
		return nil, err
	}
	if h.image, err = h.monitor().kernelImage(h.kernel, e.kernels()); err != nil {
		return nil, err
	}
	h.kvm = e.kvm()
	return h, nil
}

// seesPrograms tells whether the host has the same programs as when it was probed.
func (h *host) seesPrograms(programs []string) bool {
	return slices.Equal(programs, h.programs) && !slices.ContainsFunc(h.found, func(was os.FileInfo) bool {
		return !slices.ContainsFunc(programs, func(program string) bool {
			now, err := os.Stat(program)
			return err == nil && os.SameFile(now, was) && now.ModTime().Equal(was.ModTime())
		})
	})
}
