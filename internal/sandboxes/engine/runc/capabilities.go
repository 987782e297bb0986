package runc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// Why the engine has not what another has.
const (
	noOwnKernel = "a container's system calls are the host kernel's, behind a filter; use the engine gvisor"
	noFreeze    = "runc keeps no memory: it would need CRIU, which fails with newer kernels"
	noSnapshot  = "runc keeps no memory of sandboxes, only their files; use the engine gvisor"
)

// Capabilities probes the host: runc, the tools and the kernel's features that a sandbox
// needs must be there, else the engine can't run at all; control groups may be missing.
func (e *Engine) Capabilities(ctx context.Context) (engine.Capabilities, error) {
	if err := e.available(ctx); err != nil {
		return engine.Capabilities{}, err
	}
	caps := engine.Capabilities{
		Enforces: []engine.Control{
			engine.ControlNoNetwork, engine.ControlReadOnlyRoot, engine.ControlDiskCap,
			engine.ControlUserMapping, engine.ControlNonRootUser, engine.ControlSnapshotFiles,
		},
		Missing: map[engine.Control]string{
			engine.ControlOwnKernel: noOwnKernel, engine.ControlFreeze: noFreeze, engine.ControlSnapshot: noSnapshot,
		},
		Wall: engine.WallContainer,
	}
	if why := noEach(); why != "" {
		caps.Missing[engine.ControlNProc] = why
	} else {
		caps.Enforces = append(caps.Enforces, engine.ControlNProc)
	}
	e.home.Controls(&caps)
	if all, err := e.home.List(ctx); err == nil && len(all) == 0 {
		e.home.Groups().Tidy() // asking leaves nothing on a host that never has such a sandbox
	}
	return caps, nil
}

// traceScope is the kernel's setting of who may trace whom.
const traceScope = "/proc/sys/kernel/yama/ptrace_scope"

// noEach says why the agent can't set each command's limit of processes: it holds the
// command at its first instruction, as who traces a child of its own does. "" if it can.
func noEach() string {
	data, err := os.ReadFile(traceScope)
	if scope := strings.TrimSpace(string(data)); err == nil && scope != "0" && scope != "1" {
		return "the host's setting kernel.yama.ptrace_scope is " + scope + ", with which nobody may trace a child of its own; set it to 1: until some of a user's processes end, one who has started as many as may be gets no further command in"
	}
	return ""
}

// program is the path of runc; "" if there is none.
func (e *Engine) program() string {
	if e.cfg.Runc != "" {
		return e.cfg.Runc
	}
	return executable.System("runc", e.cfg.Writable)
}

// available probes a runc until it has answered once; one that is put in its place is
// probed anew.
func (e *Engine) available(ctx context.Context) error {
	if e.uid != 0 {
		return fault.New(fault.ErrUnavailable, "the engine runc needs a daemon that is root, for the disks and the control groups of its sandboxes; gvisor runs without")
	}
	path := e.program()
	if path == "" {
		return fault.New(fault.ErrUnavailable, "there is no runc: install the package runc")
	}
	info, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "runc is missing at %s: install the package runc", path)
	}
	e.probing.Lock()
	defer e.probing.Unlock()
	if p := e.probed; p != nil && os.SameFile(p, info) && p.ModTime().Equal(info.ModTime()) {
		return nil
	}
	if err := answers(ctx, path); err != nil {
		return err
	}
	if err := hostCan(); err != nil {
		return err
	}
	e.probed = info
	return nil
}

// answers tells whether a program is a runc that filters system calls.
func answers(ctx context.Context, path string) error {
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s does not start: %.200s", path, strings.TrimSpace(string(out)))
	}
	if !strings.HasPrefix(string(out), "runc version ") {
		return fault.New(fault.ErrUnavailable, "%s is no runc: it says %.100q", path, string(out))
	}
	if !strings.Contains(string(out), "libseccomp:") {
		return fault.New(fault.ErrUnavailable, "%s filters no system calls, because it was built without libseccomp; install the distribution's runc", path)
	}
	return nil
}

// hostCan tells what of the kernel or the host is missing.
func hostCan() error {
	if major, minor, err := kernel(); err != nil || major < 5 || major == 5 && minor < 19 {
		return fault.New(fault.ErrUnavailable, "the engine runc needs Linux 5.19, for roots whose owners are mapped; this is %d.%d", major, minor)
	}
	if err := mounts.CanMakeDisks(Name); err != nil {
		return err
	}
	data, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	if err == nil && strings.TrimSpace(string(data)) == "0" {
		return fault.New(fault.ErrUnavailable, "the kernel's setting user.max_user_namespaces is 0, and the engine runc needs a user namespace for each sandbox")
	}
	return nil
}

func kernel() (major, minor int, err error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return 0, 0, err
	}
	parts := strings.SplitN(unix.ByteSliceToString(name.Release[:]), ".", 3)
	if len(parts) < 2 {
		return 0, 0, errors.New("the kernel's release can't be read")
	}
	major, err = strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, err
	}
	minor, err = strconv.Atoi(strings.TrimRightFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' }))
	return major, minor, err
}
