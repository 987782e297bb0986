package microvm

import (
	"context"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
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
		caps.Wall, caps.NoHardware = engine.WallEmulated, h.kvm.why()
		caps.Missing[hardware] = notHardware
	}
	e.home.Controls(&caps)
	if all, err := e.home.List(ctx); err == nil && len(all) == 0 {
		e.home.Groups().Tidy() // asking leaves nothing on a host that never has such a sandbox
	}
	return caps, nil
}

// hardware tells whether machines are the processor's.
func (h *host) hardware() bool { return h.kvm == kvmFast }

// program is the path of QEMU; "" if there is none.
func (e *Engine) program() string {
	if e.cfg.QEMU != "" {
		return e.cfg.QEMU
	}
	return firstOf("/usr/local/bin/qemu-system-x86_64", "/usr/bin/qemu-system-x86_64")
}

// firstOf is the first of some files that there is; "" for none.
func firstOf(paths ...string) string {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// mkfs are the programs that make disks and images.
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
	path := e.program()
	if path == "" {
		return nil, fault.New(fault.ErrUnavailable, "there is no QEMU, which the engine microvm needs: install the package qemu-system-x86")
	}
	for tool, program := range map[string]string{"mkfs.ext4 (package e2fsprogs)": mkfsDisk(), "mkfs.erofs (package erofs-utils)": mkfsImage()} {
		if program == "" {
			return nil, fault.New(fault.ErrUnavailable, "the engine microvm needs %s: install it", tool)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "QEMU is missing at %s: install the package qemu-system-x86", path)
	}
	e.probing.Lock()
	defer e.probing.Unlock()
	if h := e.probed; h != nil && os.SameFile(h.program, info) && h.program.ModTime().Equal(info.ModTime()) {
		return h, nil
	}
	h := &host{program: info}
	if h.kernel, err = findKernel(e.cfg.Kernel); err != nil {
		return nil, err
	}
	if h.modules, err = h.kernel.load(needed()); err != nil {
		return nil, err
	}
	if h.version, err = e.monitor().version(ctx); err != nil {
		return nil, err
	}
	h.kvm = e.kvm()
	e.probed = h
	return h, nil
}
