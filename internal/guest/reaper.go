package guest

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// reaper collects every dead child: those that the agent started, and the
// orphans that PID 1 inherits. Nothing else in the process may wait.
type reaper struct {
	// mu is held while a child is started and while children are collected, so
	// that a status is never taken before somebody waits for it and a pid is
	// never signalled after it was freed.
	mu      sync.Mutex
	waiting map[int]chan unix.WaitStatus
}

func newReaper() *reaper {
	return &reaper{waiting: map[int]chan unix.WaitStatus{}}
}

// start runs begin, which starts a child and returns its pid, and gives the
// channel on which the child's status will arrive, once.
func (r *reaper) start(begin func() (int, error)) (int, <-chan unix.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := begin()
	if err != nil {
		return 0, nil, err
	}
	done := make(chan unix.WaitStatus, 1)
	r.waiting[pid] = done
	return pid, done, nil
}

// signal sends sig to the process group of a started child that was not
// collected yet; afterwards it does nothing.
func (r *reaper) signal(pid int, sig unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.waiting[pid]; ok {
		_ = unix.Kill(-pid, sig) // ESRCH: the group ended by itself
	}
}

// run collects until ctx ends.
func (r *reaper) run(ctx context.Context) {
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
		if done, ok := r.waiting[pid]; ok {
			delete(r.waiting, pid)
			done <- status
		}
	}
}
