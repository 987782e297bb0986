package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// reaper waits for every child of this process, its own and those that a
// starter left behind (the keeper is a subreaper, they become its children).
// It waits for *any* child, so nothing else in the process may wait: no os/exec
// and no os.Process here. Children are started by start alone.
//
// A process that is a child of ours and not reaped yet keeps its pid. Reaping
// happens only under mu, so a signal sent under mu to a process that is not
// done reaches that very process; that is what a pidfd would be for, without a
// descriptor for each process.
type reaper struct {
	mu      sync.Mutex // held over fork and register, over wait and dispatch, over signal
	known   map[int]*process
	strays  map[int]ProcessExit // how processes ended that nobody had adopted yet
	strayed []int               // their pids, oldest first
}

// maxStrays bounds what is remembered of processes that nobody asks for.
const maxStrays = 1024

// process is a child that somebody wants to hear of.
type process struct {
	pid  int
	done chan struct{} // closed when reaped; exit may be read then
	exit ProcessExit
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func newReaper() *reaper {
	return &reaper{known: map[int]*process{}, strays: map[int]ProcessExit{}}
}

// start forks and execs argv, whose first element is a path.
func (r *reaper) start(argv []string, attr *syscall.ProcAttr) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return r.register(pid), nil
}

// adopt makes a child that a starter left behind known. One that has already
// been reaped comes back done.
func (r *reaper) adopt(pid int) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.known[pid]; ok {
		return p, nil
	}
	if exit, ok := r.strays[pid]; ok {
		p := &process{pid: pid, done: make(chan struct{}), exit: exit}
		close(p.done)
		return p, nil
	}
	if !isChild(pid) {
		return nil, fault.New(fault.ErrConflict, "process %d is not a child of the keeper; only what a launch left behind can be tracked", pid)
	}
	return r.register(pid), nil
}

// register needs mu.
func (r *reaper) register(pid int) *process {
	p := &process{pid: pid, done: make(chan struct{})}
	r.known[pid] = p
	r.dropStray(pid)
	return p
}

// signal does nothing to a process that has ended. With group, the whole
// process group that it leads gets it.
func (r *reaper) signal(p *process, sig syscall.Signal, group bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.alive() {
		return nil
	}
	target := p.pid
	if group {
		target = -p.pid
	}
	if err := unix.Kill(target, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", sig, p.pid, err)
	}
	return nil
}

// reap takes everything that has ended. To be called on each SIGCHLD, of which
// several may have become one.
func (r *reaper) reap() {
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
		// A later Track of the same pid must still find it.
	}
	r.dropStray(pid)
	r.strays[pid] = exit
	r.strayed = append(r.strayed, pid)
	if len(r.strayed) > maxStrays {
		delete(r.strays, r.strayed[0])
		r.strayed = r.strayed[1:]
	}
}

func (r *reaper) dropStray(pid int) {
	if _, ok := r.strays[pid]; !ok {
		return
	}
	delete(r.strays, pid)
	r.strayed = slices.DeleteFunc(r.strayed, func(p int) bool { return p == pid })
}

// isChild tells whether pid is a child of this process.
func isChild(pid int) bool {
	if pid <= 1 {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// pid (comm) state ppid ...: comm may hold anything, so from its last ")".
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 1 && string(fields[1]) == strconv.Itoa(os.Getpid())
}
