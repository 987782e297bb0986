package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// Pids lists the processes in the group, each once.
func (g *Group) Pids() []int {
	var pids []int
	for _, dir := range g.listDirs() {
		for _, word := range fields(filepath.Join(dir, "cgroup.procs")) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 0 && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Kill sends SIGKILL to all that is in the group, again and again until it is
// empty. Zombies whose parent does not reap them keep a version 1 group
// occupied, so the context bounds the wait.
func (g *Group) Kill(ctx context.Context) error {
	return retryUntil(ctx, func() error {
		pids := g.Pids()
		if len(pids) == 0 {
			return nil
		}
		for _, p := range g.places {
			if p.version == 2 {
				// One write kills even those that fork meanwhile; kernels
				// before 5.14 don't have it, so its absence is no error.
				_ = os.WriteFile(filepath.Join(p.parent, "cgroup.kill"), []byte("1"), 0o600)
			}
		}
		g.killMembers(pids)
		return fmt.Errorf("processes %v are still in the group", pids)
	})
}

// killMembers sends SIGKILL to those of the processes that are in the group for sure: a number may
// be somebody else's by the time that it is used. So each gets a handle first, and only then it is
// looked whether the number is in the group. The next look finds a process that can't be killed so.
// Linux before 5.3 has no handles; there a moment is left between the look and the kill.
func (g *Group) killMembers(pids []int) {
	handles := map[int]process.Handle{}
	var bare []int
	for _, pid := range pids {
		if handle, err := process.Hold(pid); err == nil {
			handles[pid] = handle
		} else if errors.Is(err, unix.ENOSYS) {
			bare = append(bare, pid)
		}
	}
	members := g.Pids()
	for pid, handle := range handles {
		if slices.Contains(members, pid) {
			_ = handle.Signal(unix.SIGKILL) // It may be gone already.
		}
		handle.Close()
	}
	for _, pid := range bare {
		if slices.Contains(members, pid) && process.Ordinary(pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// Remove removes the group, waiting until the kernel has let go of the last
// dead process. A group that is gone is no error; one that stays occupied is,
// when the context ends or after five seconds. The last group of a share
// takes that with it, and the last of an installation the parent.
func (g *Group) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var errs []error
	for _, dir := range g.listDirs() {
		errs = append(errs, retryUntil(ctx, func() error {
			err := unix.Rmdir(dir)
			if err == nil || errors.Is(err, unix.ENOENT) {
				return nil
			}
			return fmt.Errorf("remove %s: %w", dir, err)
		}))
	}
	g.hierarchy.removeParents(g.share)
	return errors.Join(errs...)
}

// retryUntil calls try until it succeeds or the context ends, waiting longer each
// time, and returns its last error.
func retryUntil(ctx context.Context, try func() error) error {
	const longest = 50 * time.Millisecond
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, longest) {
		err := try()
		if err == nil {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}
