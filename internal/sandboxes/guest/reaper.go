package guest

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// reaper collects every dead child: those that the agent started, and the
// orphans that PID 1 inherits. Nothing else in the process may wait.
type reaper struct {
	// mu is held while a child is forked and while children are collected, so
	// that a status is never taken before somebody waits for it and a pid is
	// never signalled after it was freed; and while a tree is looked for and
	// signalled, so that no child is seen that nobody knows yet.
	mu      sync.Mutex
	waiting map[int]awaited
}

// awaited is a child that was started and not collected yet: its number is its own.
type awaited struct {
	id   process.ID
	done chan<- unix.WaitStatus
}

func newReaper() *reaper {
	return &reaper{waiting: map[int]awaited{}}
}

// startChild runs begin, which forks a child and does not wait for it, and gives the channel on
// which the child's status will arrive, once.
func (r *reaper) startChild(begin func() (process.ID, error)) (<-chan unix.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := begin()
	if err != nil {
		return nil, err
	}
	done := make(chan unix.WaitStatus, 1)
	r.waiting[id.Pid] = awaited{id: id, done: done}
	return done, nil
}

// signalGroup sends sig to the process group of a started child that was not
// collected yet; afterwards it does nothing.
func (r *reaper) signalGroup(id process.ID, sig unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signalHeld(id, sig)
}

// signalHeld sends a signal; the caller holds mu.
func (r *reaper) signalHeld(id process.ID, sig unix.Signal) {
	if child, ok := r.waiting[id.Pid]; ok && child.id == id && process.Ordinary(id.Pid) {
		_ = unix.Kill(-id.Pid, sig) // ESRCH: the group ended by itself
	}
}

// collectChildren collects until ctx ends.
func (r *reaper) collectChildren(ctx context.Context) {
	wake := make(chan os.Signal, 1)
	signal.Notify(wake, unix.SIGCHLD)
	defer signal.Stop(wake)
	for {
		r.collect()
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
	}
}

// collect takes the status of every child that is dead now.
func (r *reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if child, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			child.done <- status
		}
	}
}
