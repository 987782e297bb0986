package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Capabilities probes the host: runsc must be there and start in namespaces of
// its own, else the engine can't run at all; control groups may be missing.
func (e *Engine) Capabilities(ctx context.Context) (engine.Capabilities, error) {
	if err := e.runscStarts(ctx); err != nil {
		return engine.Capabilities{}, err
	}
	caps := engine.Capabilities{
		Enforces: []engine.Control{
			engine.ControlNoNetwork, engine.ControlReadOnlyRoot, engine.ControlDiskCap, engine.ControlNProc,
			engine.ControlOwnKernel, engine.ControlUserMapping, engine.ControlNonRootUser,
		},
		Missing:  map[engine.Control]string{},
		Rootless: e.uid != 0,
		Wall:     engine.WallUserKernel,
	}
	if e.uid != 0 {
		// The mapping of one id keeps owners, but takes from PID 1 an id that
		// differs from that of the commands.
		if reason := e.ids().Missing; reason != "" {
			caps.Missing[engine.ControlNonRootUser] = "the agent in the sandbox and its commands share one user: " + reason
			caps.Enforces = caps.Enforces[:len(caps.Enforces)-1]
		}
	}
	if err := e.canFreeze(); err != nil {
		caps.Missing[engine.ControlFreeze] = err.Error()
	} else {
		caps.Enforces = append(caps.Enforces, engine.ControlFreeze)
	}
	if err := e.canSnapshot(); err != nil {
		caps.Missing[engine.ControlSnapshot], caps.Missing[engine.ControlSnapshotFiles] = err.Error(), err.Error()
	} else {
		caps.Enforces = append(caps.Enforces, engine.ControlSnapshot, engine.ControlSnapshotFiles)
	}
	e.home.Controls(&caps)
	return caps, nil
}

// runscThere is the name by which runsc is started.
func (e *Engine) runscThere() (string, error) {
	name, err := e.runsc.Name()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.Wrap(fault.ErrUnavailable, err, "gVisor's runsc is missing at %s; run `make build`, which builds it", e.cfg.Runsc)
	case errors.Is(err, fault.ErrUnavailable):
		return "", fault.Wrap(fault.ErrUnavailable, err, "gVisor's runsc at %s can't be run; run `make build`, which builds it anew", e.cfg.Runsc)
	}
	return name, err
}

// runscStarts probes a runsc until it has started once; one that is put in its
// place is probed anew.
func (e *Engine) runscStarts(ctx context.Context) error {
	name, err := e.runscThere()
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	e.probing.Lock()
	defer e.probing.Unlock()
	if p := e.probed; p != nil && os.SameFile(p, info) && p.Size() == info.Size() && p.ModTime().Equal(info.ModTime()) {
		return nil
	}
	if err := e.tryNamespaces(ctx, name); err != nil {
		return err
	}
	e.probed = info
	return nil
}

// tryNamespaces starts runsc in the kinds of namespaces that a sandbox gets.
// The reason is looked up only after that failed.
func (e *Engine) tryNamespaces(ctx context.Context, name string) error {
	cmd := exec.CommandContext(ctx, name, "--version")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: e.uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.ErrUnavailable, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out))),
		"runsc can't start in namespaces of its own: %s", forbidden(e.uid))
}

// forbidden names the switch that forbids user namespaces.
func forbidden(uid int) string {
	const sysctl = "/proc/sys/"
	for name, bad := range map[string]string{
		"user/max_user_namespaces":                     "0",
		"kernel/unprivileged_userns_clone":             "0",
		"kernel/apparmor_restrict_unprivileged_userns": "1",
	} {
		data, err := os.ReadFile(sysctl + name)
		if err == nil && strings.TrimSpace(string(data)) == bad {
			return fmt.Sprintf("the kernel's setting %s is %s; change it, or run the daemon as root", strings.ReplaceAll(name, "/", "."), bad)
		}
	}
	if uid == 0 {
		return "this looks like a container that may make no namespaces; run on the host, or allow them to the container"
	}
	return "unprivileged user namespaces seem to be forbidden here; run the daemon as root"
}
