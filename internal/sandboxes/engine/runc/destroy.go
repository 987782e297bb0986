package runc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
)

// groupWait bounds the wait for the last dead process of a control group.
const groupWait = 5 * time.Second

// releasePause is between two looks for what is held still.
const releasePause = 10 * time.Millisecond

// Sweep destroys what is left of an instance, also processes that the keeper does not know
// (because it, or a stage, died).
func (e *Engine) Sweep(ctx context.Context, id string) error {
	if err := hostproc.CheckID(id); err != nil {
		return err
	}
	return e.sweepTraces(ctx, id)
}

func (e *Engine) sweepTraces(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, hostproc.LongestWait)
	defer cancel()
	killed := e.ending(id, func() error {
		err := e.keeper.Kill(ctx, id)
		if errors.Is(err, fault.ErrNotFound) {
			err = nil
		}
		return errors.Join(err, e.killStrays(ctx, id))
	})
	return errors.Join(killed, e.removeFiles(ctx, id))
}

// destroy is the fast way for an instance whose PID 1 the keeper tracks: SIGKILL, which
// ends its whole pid namespace, reaped by the keeper, then unlink.
func (e *Engine) destroy(ctx context.Context, id string) error {
	known, gone, err := e.home.Gone(ctx, id)
	if gone {
		return nil
	}
	unknown := len(known.Pids) == 0 && known.Exit == nil
	if err != nil || unknown || e.ending(id, func() error { return e.keeper.Kill(ctx, id) }) != nil {
		return e.sweepTraces(ctx, id)
	}
	return e.removeFiles(ctx, id)
}

func (e *Engine) removeFiles(ctx context.Context, id string) error {
	err := e.home.Remove(ctx, id, func() error { return e.removeRecord(ctx, id) })
	if e.placing.TryLock() {
		defer e.placing.Unlock()
		if all, listed := e.home.List(ctx); listed == nil && len(all) == 0 {
			_ = unix.Rmdir(e.cfg.Place) // the next start makes it again
		}
	}
	return err
}

// ending has something end the container, and meanwhile the kernel let go of what a
// snapshot holds still: in version 1 of control groups nothing of that can be killed.
func (e *Engine) ending(id string, kill func() error) error {
	over := make(chan struct{})
	var released sync.WaitGroup
	safego.In(&released, func() {
		tick := time.NewTicker(releasePause)
		defer tick.Stop()
		for {
			e.releaseProcesses(id)
			select {
			case <-over:
				return
			case <-tick.C: // a snapshot may have begun meanwhile
			}
		}
	})
	err := kill()
	close(over)
	released.Wait()
	return err
}

// releaseProcesses lets the container's processes go on, if they are held still. A container that
// has ended has no such file.
func (e *Engine) releaseProcesses(id string) {
	r, err := e.readRecord(id)
	if err != nil {
		return
	}
	for controller, file := range map[string][2]string{"freezer": {"freezer.state", "THAWED"}, "": {"cgroup.freeze", "0"}} {
		if dir := r.Groups[controller]; filepath.IsAbs(dir) {
			if f, err := os.OpenFile(filepath.Join(dir, file[0]), os.O_WRONLY, 0); err == nil {
				_, _ = f.WriteString(file[1])
				_ = f.Close()
			}
		}
	}
}

// record is what runc writes down of a container, as far as we read it.
type record struct {
	Pid    int               `json:"init_process_pid"`
	Start  uint64            `json:"init_process_start"`
	Groups map[string]string `json:"cgroup_paths"` // by controller; with version 2 there is one, ""
}

func (e *Engine) readRecord(id string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(e.cfg.Root, id, "state.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// removeRecord removes what runc knows of a container whose processes are gone, and the
// control groups that it made beside ours.
func (e *Engine) removeRecord(ctx context.Context, id string) error {
	return errors.Join(e.removeGroups(ctx, id), os.RemoveAll(filepath.Join(e.cfg.Root, id)))
}

// removeGroups removes the container's groups in hierarchies that we set no limits in, and
// with the last container those above them.
func (e *Engine) removeGroups(ctx context.Context, id string) error {
	var errs []error
	each := func(below string, remove func(dir string) error) {
		for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
			found, err := filepath.Glob(filepath.Join(hierarchy, e.home.Parent(), below))
			errs = append(errs, err)
			for _, dir := range found {
				errs = append(errs, remove(dir))
			}
		}
	}
	emptied := func(dir string) error { return removeGroup(ctx, dir) }
	each(id, emptied)
	each("*.share/"+id, emptied)
	if all, err := e.home.List(ctx); err != nil || len(all) > 1 {
		return errors.Join(append(errs, err)...) // another's start may count on what is above
	}
	unused := func(dir string) error { _ = unix.Rmdir(dir); return nil } // others may be in it
	each("*.share", unused)
	each("", unused)
	return errors.Join(errs...)
}

// removeGroup waits until the kernel has let go of the last dead process of a group.
func removeGroup(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, groupWait)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
}

// killStrays kills every process of the sandbox that can be found: PID 1 by runc's record,
// what is in its control group, and a stage or runc that was starting it.
func (e *Engine) killStrays(ctx context.Context, id string) error {
	errs := []error{e.strays(id).Kill(ctx)}
	if r, err := e.readRecord(id); err == nil && process.Ordinary(r.Pid) {
		errs = append(errs, endProcess(ctx, process.ID{Pid: r.Pid, Start: r.Start}))
	}
	if group, err := e.home.Groups().Open(id); err == nil {
		errs = append(errs, group.Kill(ctx))
	}
	return errors.Join(errs...)
}

// endProcess kills a process, if it is still the one, and waits for its end.
func endProcess(ctx context.Context, id process.ID) error {
	handle, err := process.Open(id)
	if errors.Is(err, process.ErrOver) {
		return nil
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := handle.Signal(unix.SIGKILL); err != nil && !errors.Is(err, process.ErrOver) {
		return err
	}
	return handle.Await(ctx)
}
