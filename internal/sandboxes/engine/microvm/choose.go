package microvm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// choice is the monitor that machines are run by.
type choice struct {
	kind    string
	program string
	passed  string // why it is no other that would be preferred; ""
}

func (c choice) monitor() monitor { return monitorOf(c.kind, c.program) }

// The remedy for a monitor that is not there.
const (
	getQEMU        = "install the package qemu-system-x86"
	getFirecracker = "put the program of a release of Firecracker at /usr/local/bin/firecracker"
)

// programs are the paths of those that may be chosen, as far as they are there.
func (e *Engine) programs() []string {
	all := []string{e.cfg.Monitor}
	if e.cfg.Monitor == "" {
		all = []string{e.firecracker(), e.qemuProgram()}
	}
	var there []string
	for _, program := range all {
		if firstOf(program) != "" {
			there = append(there, program)
		}
	}
	return there
}

func (e *Engine) qemuProgram() string {
	if e.cfg.QEMU != "" {
		return e.cfg.QEMU
	}
	return executable.System("qemu-system-x86_64", e.cfg.Writable)
}

func (e *Engine) firecracker() string {
	if e.cfg.Firecracker != "" {
		return e.cfg.Firecracker
	}
	return executable.System("firecracker", e.cfg.Writable)
}

// choose takes Firecracker where it can run machines, which only hardware can have it do, and
// else QEMU.
func (e *Engine) choose(ctx context.Context, k kernel) (c choice, version string, err error) {
	if e.cfg.Monitor != "" {
		return e.namedMonitor(ctx, k)
	}
	c = choice{kind: kindFirecracker, program: e.firecracker()}
	if version, err = e.usable(ctx, c, k); err == nil {
		return c, version, nil
	}
	passed := "Firecracker is not used: " + err.Error()
	c = choice{kind: kindQEMU, program: e.qemuProgram(), passed: passed}
	switch {
	case c.program == "":
		return c, "", fault.New(fault.ErrUnavailable, "there is no QEMU, which the engine microvm needs: %s (%s)", getQEMU, passed)
	case firstOf(c.program) == "":
		return c, "", fault.New(fault.ErrUnavailable, "QEMU is missing at %s: %s (%s)", c.program, getQEMU, passed)
	}
	version, err = c.monitor().askVersion(ctx)
	return c, version, err
}

// namedMonitor is the monitor that the configuration names.
func (e *Engine) namedMonitor(ctx context.Context, k kernel) (c choice, version string, err error) {
	if !filepath.IsAbs(e.cfg.Monitor) {
		return c, "", fault.New(fault.ErrUnavailable, "machine_monitor in the configuration must be an absolute path, which %q is not", e.cfg.Monitor)
	}
	if _, err := os.Stat(e.cfg.Monitor); err != nil {
		return c, "", fault.Wrap(fault.ErrUnavailable, err, "the monitor that machine_monitor names in the configuration is missing: %s, or %s, and name it, or neither", getQEMU, getFirecracker)
	}
	c = choice{kind: kindQEMU, program: e.cfg.Monitor}
	version, no := c.monitor().askVersion(ctx)
	if no == nil {
		return c, version, nil
	}
	c.kind = kindFirecracker
	version, err = e.usable(ctx, c, k)
	if err != nil && !strings.HasPrefix(version, "Firecracker") { // it is neither
		err = errors.Join(no, err)
	}
	return c, version, err
}

// usable is what a Firecracker calls itself that can run machines here, of a kernel, with an
// error if it can't.
func (e *Engine) usable(ctx context.Context, c choice, k kernel) (version string, err error) {
	if c.program == "" || firstOf(c.program) == "" {
		return "", fault.New(fault.ErrUnavailable, "there is none; %s", getFirecracker)
	}
	if version, err = c.monitor().askVersion(ctx); err != nil {
		return "", err
	}
	if v := e.kvm(); v != kvmFast {
		return version, fault.New(fault.ErrUnavailable, "it needs hardware, and %s", v.whyAndRemedy())
	}
	if _, err := c.monitor().kernelImage(k, e.kernels()); err != nil {
		return version, err
	}
	_, err = k.loadModules(c.monitor().modules())
	return version, err
}
