package keeper

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// reaper waits for every child of this process, its own and those that a
// starter left behind (the keeper is a subreaper, they become its children).
// It waits for *any* child, so nothing else in the process may wait: no os/exec
// and no os.Process here. Children are started by start alone.
//
// A process that is a child of ours and not reaped yet keeps its pid. Reaping
// happens only under mu, so a signal sent under mu to a process that is not
// done reaches that very process; that is what a pidfd would be for, without a
// descriptor for each process. A pid of a process that is not, says nothing: the
// kernel gives it to the next.
type reaper struct {
	mu     sync.Mutex     // held over fork and register, over wait and dispatch, over signal
	known  map[int]*child // by pid; none of them is reaped
	reaped uint64         // how many have ever been
	ended  []ended        // the last of them, oldest first
}

// maxEnded bounds what is remembered of processes that nobody may ask for.
const maxEnded = 1024

// ended is how a process ended.
type ended struct {
	pid    int
	number uint64 // of reaper.reaped
	exit   ProcessExit
}

// child is one that somebody wants to hear of.
type child struct {
	id   process.ID
	box  string        // the sandbox that it is of
	born birth         // of what it may leave behind
	done chan struct{} // closed when reaped; exit may be read then
	exit ProcessExit
}

// birth is when a starter began: what it left behind is younger, and was not
// reaped before.
type birth struct {
	start  uint64 // the starter's
	reaped uint64 // reaper.reaped at that time
}

func (p *child) isAlive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// isSame tells whether q is the process that p is. One that is over has been told
// of anew by each adopt.
func (p *child) isSame(q *child) bool {
	return q == p || q.id.Pid == p.id.Pid && !q.isAlive() && !p.isAlive()
}

func newReaper() *reaper {
	return &reaper{known: map[int]*child{}}
}

// startChild forks and execs argv, whose first element is a path, for a sandbox.
func (r *reaper) startChild(box string, argv []string, attr *syscall.ProcAttr) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	id, err := process.Of(pid) // ours, and not reaped: the number is its own
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return r.registerChild(box, id), nil
}

// adoptChild makes a process that a sandbox's starter left behind known. One that is
// over comes back done. With anyStart all that is known of it is its number;
// otherwise a start of 0 is that of a process which is over, or dead.
func (r *reaper) adoptChild(box string, born birth, id process.ID, anyStart bool) (*child, error) {
	if !process.Ordinary(id.Pid) {
		return nil, fault.Invalid("%d is the number of no process that can be tracked", id.Pid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, err := process.Read(id.Pid)
	mine := err == nil && now.Parent == os.Getpid() && now.Start >= born.start &&
		(anyStart || id.Start == now.Start || id.Start == 0 && now.Dead)
	p, known := r.known[id.Pid]
	switch {
	case mine && !known:
		return r.registerChild(box, now.ID), nil
	case mine && p.box == box:
		return p, nil
	default: // nobody's number, or another's
		return r.reapedChild(box, born, id)
	}
}

// reapedChild is a process that has been reaped since the starter began. Needs mu.
func (r *reaper) reapedChild(box string, born birth, id process.ID) (*child, error) {
	for _, e := range slices.Backward(r.ended) {
		if e.number <= born.reaped {
			break
		}
		if e.pid == id.Pid {
			p := &child{id: id, box: box, done: make(chan struct{}), exit: e.exit}
			close(p.done)
			return p, nil
		}
	}
	return nil, fault.New(fault.ErrConflict, "process %d is not a child of the keeper; only what a launch left behind can be tracked", id.Pid)
}

// registerChild needs mu.
func (r *reaper) registerChild(box string, id process.ID) *child {
	p := &child{id: id, box: box, done: make(chan struct{}), born: birth{start: id.Start, reaped: r.reaped}}
	r.known[id.Pid] = p
	return p
}

// signalChild does nothing to a process that has ended. With group, the whole
// process group that it leads gets it.
func (r *reaper) signalChild(p *child, sig syscall.Signal, group bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.isAlive() {
		return nil
	}
	if !process.Ordinary(p.id.Pid) { // it can't have been registered; -1 would be everybody
		return fault.Invalid("%d is the number of no process that can be signalled", p.id.Pid)
	}
	target := p.id.Pid
	if group {
		target = -p.id.Pid
	}
	if err := unix.Kill(target, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", sig, p.id.Pid, err)
	}
	return nil
}

// reapAll takes everything that has ended. To be called on each SIGCHLD, of which
// several may have become one.
func (r *reaper) reapAll() {
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
		r.dispatch(pid, status)
	}
}

func (r *reaper) dispatch(pid int, status unix.WaitStatus) {
	exit := ProcessExit{Code: status.ExitStatus()}
	if status.Signaled() {
		exit = ProcessExit{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}
	}
	if p, ok := r.known[pid]; ok {
		delete(r.known, pid)
		p.exit = exit
		close(p.done)
	}
	// A Track of it may still come, also of what was known: a daemon asks again.
	r.reaped++
	r.ended = append(r.ended, ended{pid: pid, number: r.reaped, exit: exit})
	if len(r.ended) > maxEnded {
		r.ended = slices.Delete(r.ended, 0, len(r.ended)-maxEnded)
	}
}
