package docker

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// Why the engine has not what another has.
const (
	noFreeze   = "a Docker daemon keeps no memory of containers without its experimental checkpoints; use the engine gvisor"
	noSnapshot = "its snapshots hold files only, no memory; use the engine gvisor"
	noHardware = "a Docker daemon does not show whether a machine of its runtimes is the processor's"
	noNProc    = "without a user namespace the kernel counts a user's processes over all containers, so that only the container's whole number is bounded: a fork bomb keeps the next command out, or ends the sandbox"
)

// asksAgainAfter is how long it is believed of a service that none of its runtimes works.
const asksAgainAfter = time.Minute

// finding is what a probe of a service found.
type finding struct {
	key     string // of what was probed: another service, or one with other runtimes, is probed anew
	runtime runtimeOf
	info    system.Info
	failed  map[string]error // the stronger runtimes, and why each is not used
	err     error            // no runtime works
	until   time.Time        // for an err
}

// Capabilities asks the service and runs a container under each runtime that it lists, the
// strongest first, until one shows what it must: it is the one that sandboxes get.
func (e *Engine) Capabilities(ctx context.Context) (engine.Capabilities, error) {
	f, err := e.findService(ctx)
	if err != nil {
		return engine.Capabilities{}, err
	}
	caps := engine.Capabilities{
		Enforces: []engine.Control{
			engine.ControlNoNetwork, engine.ControlReadOnlyRoot, engine.ControlDiskCap, engine.ControlUserMapping, engine.ControlNonRootUser,
			engine.ControlSnapshotFiles,
		},
		Missing: map[engine.Control]string{engine.ControlFreeze: noFreeze, engine.ControlSnapshot: noSnapshot},
		Wall:    f.runtime.wall, NoHardware: noHardware,
	}
	add := func(c engine.Control, has bool, why string) {
		if has {
			caps.Enforces = append(caps.Enforces, c)
		} else {
			caps.Missing[c] = why
		}
	}
	const limit = "the Docker daemon says that this kernel limits no %s; `docker info` shows its warnings"
	add(engine.ControlMemory, f.info.MemoryLimit, fmt.Sprintf(limit, "memory"))
	add(engine.ControlCPU, f.info.CPUCfsQuota, fmt.Sprintf(limit, "processors"))
	add(engine.ControlPids, f.info.PidsLimit, fmt.Sprintf(limit, "processes"))
	add(engine.ControlNProc, f.runtime.ownKernel, noNProc)
	add(engine.ControlOwnKernel, f.runtime.ownKernel, f.whyWeak())
	return caps, nil
}

// whyWeak says why the runtime is no stronger.
func (f *finding) whyWeak() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the strongest runtime of the Docker daemon that works here is %s, whose containers share the host's kernel; it lists no kata and no runsc", f.runtime.name)
	if len(f.failed) == 0 {
		return b.String()
	}
	b.Reset()
	fmt.Fprintf(&b, "the strongest runtime of the Docker daemon that works here is %s, whose containers share the host's kernel", f.runtime.name)
	for _, name := range candidates(f.info) {
		if err := f.failed[name]; err != nil {
			fmt.Fprintf(&b, "; %s does not work: %.300s", name, err)
		}
	}
	return b.String()
}

// findService returns what a probe found of the service that is there now.
func (e *Engine) findService(ctx context.Context) (*finding, error) {
	if e.uid != 0 {
		return nil, fault.New(fault.ErrUnavailable, "the engine docker needs a daemon that is root, for the mounts of its sandboxes; gvisor runs without")
	}
	s, err := e.dialService(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	info, err := s.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, s.absent(err)
	}
	key, err := s.serviceKey(ctx, info.Info)
	if err != nil {
		return nil, err
	}
	if err := e.probing.Acquire(ctx, 1); err != nil {
		return nil, err // another's probe takes longer than the caller waits
	}
	defer e.probing.Release(1)
	if f := e.found; f != nil && f.key == key && (f.err == nil || time.Now().Before(f.until)) {
		return f, f.err
	}
	if err := checkService(ctx, s, info.Info); err != nil {
		return nil, err
	}
	if err := mounts.CanMakeDisks(Name); err != nil {
		return nil, err
	}
	f := e.probeAll(ctx, s, info.Info)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.key = key
	e.found = f
	return f, f.err
}

// serviceKey changes when another service listens, or lists other runtimes.
func (s service) serviceKey(ctx context.Context, info system.Info) (string, error) {
	id, err := s.listener(ctx)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(s.socket, &st); err != nil {
		return "", s.absent(&os.PathError{Op: "stat", Path: s.socket, Err: err})
	}
	var runtimes []string
	for name, r := range info.Runtimes {
		runtimes = append(runtimes, name+"="+r.Path+r.Type+strings.Join(r.Args, ","))
	}
	slices.Sort(runtimes)
	return fmt.Sprint(info.ID, info.ServerVersion, info.SecurityOptions, id, st.Ino, st.Ctim, runtimes), nil
}

// probeAll probes runtimes until one works.
func (e *Engine) probeAll(ctx context.Context, s service, info system.Info) *finding {
	f := &finding{info: info, failed: map[string]error{}}
	var errs []string
	for _, name := range candidates(info) {
		seen, err := e.probeRuntime(ctx, s, name)
		if err == nil {
			err = seen.checkSeen()
		}
		if err == nil {
			f.runtime = proved(name, info, seen.Kernel != hostKernel())
			return f
		}
		f.failed[name] = err
		errs = append(errs, fmt.Sprintf("%s: %.300s", name, err))
	}
	f.until = time.Now().Add(asksAgainAfter)
	if len(errs) == 0 {
		f.err = fault.New(fault.ErrUnavailable, "the Docker daemon at %s lists none of the runtimes kata, runsc and runc", s.socket)
		return f
	}
	f.err = fault.New(fault.ErrUnavailable, "no runtime of the Docker daemon at %s works for sandboxes: %s", s.socket, strings.Join(errs, "; "))
	return f
}
